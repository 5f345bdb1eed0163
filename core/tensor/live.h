// live.h: the tensors of every device but the host, so that an error can name the users of a device.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke::detail {

// From here on, until forget_live(), the tensor is in the list. Its shape, dtype and device are set.
void note_live(const yoke_tensor *tensor);
void forget_live(const yoke_tensor *tensor) noexcept;

// Implements an entry of core/base/lent.h.
int64_t live_tensors(Device &device, size_t most, std::vector<std::string> &names);

}  // namespace yoke::detail
