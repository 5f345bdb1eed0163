// await_fence.h: waits of host threads for a fence, with a deadline. A device does not notify a thread at a deadline.
#pragma once

#include "core/base/deadline.h"
#include "core/device/stream.h"

#include <functional>

namespace yoke {

// Pauses the thread for an eighth of the time since `began`, at most 1 ms. A polling loop is late by at most this
// pause.
void pause_between_looks(Deadline::Clock::time_point began) noexcept;

// Waits until the fence is reached, and returns true. Returns false if the deadline passes before, or if is_over() is
// true; a null `is_over` does not end the wait. Raises the device's failure.
bool is_reached_by(const Fence &fence, Deadline deadline, const std::function<bool()> &is_over);

}  // namespace yoke
