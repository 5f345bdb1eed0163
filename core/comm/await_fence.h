// await_fence.h: waits of the host for a fence, with a deadline. No device tells the host at a deadline.
#pragma once

#include "core/base/deadline.h"
#include "core/device/stream.h"

#include <functional>

namespace yoke {

// Waits until the fence is reached. Returns false if the deadline passes before, or is_over() is true; null asks
// nobody. The host looks again after an eighth of the time that it has waited: it hears that much late at most.
bool is_reached_by(const Fence &fence, Deadline deadline, const std::function<bool()> &is_over);

}  // namespace yoke
