// budget_times.h: duration of a forward's call, by which a memory budget chooses the values to recompute.
#pragma once

#include "core/device/device.h"

namespace yoke {

// Clock between two points. On a GPU, all kernels launched so far have ended at each point. In a capture no caller
// can wait, so the times are estimates for a fast card.
class CallClock {
public:
    void start(Device &device, bool waits);
    // Returns the seconds since start; an estimate in a capture of a GPU. If YOKE_BUDGET_TIMES is set, returns a
    // random time instead.
    double stop(const yoke_launch &launch, Device &device, bool waits) const;

private:
    double started_ = 0;
};

}  // namespace yoke
