// budget_times.h: what a call of a forward takes, by which a memory budget chooses what is made again.
#pragma once

#include "core/device/device.h"

namespace yoke {

// From one point to the next. On a GPU the kernels that were launched so far have ended, but not in a capture, where
// nobody can wait: there the times are those of a fast card.
class CallClock {
public:
    void start(Device &device, bool waits);
    // Seconds since start. YOKE_BUDGET_TIMES may have drawn them instead.
    double stop(const yoke_launch &launch, Device &device, bool waits) const;

private:
    double started_ = 0;
};

}  // namespace yoke
