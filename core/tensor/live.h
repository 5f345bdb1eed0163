// live.h: the tensors of every device but the host, so that an error can name the users of a device.
#pragma once

#include "core/tensor/tensor.h"

#include <functional>

namespace yoke {

// Calls visit() with the tensor at an address, if such a tensor is alive, and returns whether it is. The tensor does
// not end during the call, but its end may have begun: visit() may copy it and the references in it, and may take no
// reference to the tensor itself. visit() makes and releases no tensor.
bool visit_live(const yoke_tensor *address, const std::function<void(const yoke_tensor &)> &visit);

}  // namespace yoke

namespace yoke::detail {

// Adds a tensor, with shape, dtype and device set, to the list; forget_live() removes the tensor.
void note_live(const yoke_tensor *tensor);
void forget_live(const yoke_tensor *tensor) noexcept;

// Returns the number of tensors on a device, and adds descriptions of at most `most` tensors to `names`. Serves an
// entry of core/base/lent.h.
int64_t live_tensors(Device &device, size_t most, std::vector<std::string> &names);

}  // namespace yoke::detail
