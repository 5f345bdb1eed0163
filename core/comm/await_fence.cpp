#include "core/comm/await_fence.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace yoke {

bool is_reached_by(const Fence &fence, Deadline deadline, const std::function<bool()> &is_over)
{
    using Seconds = std::chrono::duration<double>;
    constexpr Seconds kLeast(20e-6), kMost(1e-3);
    const auto began = Deadline::Clock::now();
    while (!is_reached(fence)) {
        if (deadline.has_passed() || (is_over && is_over())) return false;
        const Seconds pause = (Deadline::Clock::now() - began) / 8;
        if (pause < kLeast)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::min(pause, kMost));
    }
    return true;
}

}  // namespace yoke
