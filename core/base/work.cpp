#include "core/base/work.h"

#include <algorithm>
#include <chrono>

namespace yoke {

void Work::finish(std::exception_ptr failure) noexcept
{
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    done_.store(true, std::memory_order_release);
    ended_.notify_all();
}

bool Work::wait(double seconds)
{
    constexpr double kLongest = 1e9;  // clocks end somewhere
    std::unique_lock lock(mutex_);
    const auto is_done = [this] { return done_.load(std::memory_order_relaxed); };
    if (seconds < 0)
        ended_.wait(lock, is_done);
    else
        ended_.wait_for(lock, std::chrono::duration<double>(std::min(seconds, kLongest)), is_done);
    if (failure_) std::rethrow_exception(failure_);
    return is_done();
}

}  // namespace yoke
