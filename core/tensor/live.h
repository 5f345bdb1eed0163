// live.h: the tensors of every device but the host, so that an error can name the users of a device.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke::detail {

// Adds a tensor, with shape, dtype and device set, to the list; forget_live() removes the tensor.
void note_live(const yoke_tensor *tensor);
void forget_live(const yoke_tensor *tensor) noexcept;

// Returns the number of tensors on a device, and adds descriptions of at most `most` tensors to `names`. Serves an
// entry of core/base/lent.h.
int64_t live_tensors(Device &device, size_t most, std::vector<std::string> &names);

}  // namespace yoke::detail
