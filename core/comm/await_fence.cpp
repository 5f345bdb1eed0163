#include "core/comm/await_fence.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace yoke {

void pause_between_looks(Deadline::Clock::time_point began) noexcept
{
    using Seconds = std::chrono::duration<double>;
    constexpr Seconds kLeast(20e-6), kMost(1e-3);
    const Seconds pause = (Deadline::Clock::now() - began) / 8;
    if (pause < kLeast)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::min(pause, kMost));
}

bool is_reached_by(const Fence &fence, Deadline deadline, const std::function<bool()> &is_over)
{
    const auto began = Deadline::Clock::now();
    while (!is_reached(fence)) {
        if (deadline.has_passed() || (is_over && is_over())) return false;
        pause_between_looks(began);
    }
    return true;
}

}  // namespace yoke
