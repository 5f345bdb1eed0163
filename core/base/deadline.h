// deadline.h: until when a call may wait. It is made once, where the call comes in, and handed down: so what a call
// does in several steps takes no longer than it was given.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace yoke {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    // From now on; below 0 counts as 0.
    static Deadline after(double seconds) { return Deadline(std::clamp(seconds, 0., kLongest)); }
    static Deadline never() { return Deadline(kLongest); }
    // The earlier one of this and `seconds` from now on.
    Deadline within(double seconds) const
    {
        const Deadline other = after(seconds);
        return other.at_ < at_ ? other : *this;
    }

    Clock::time_point at() const noexcept { return at_; }
    bool has_passed() const noexcept { return Clock::now() >= at_; }
    double remaining_s() const noexcept
    {
        return std::max(0., std::chrono::duration<double>(at_ - Clock::now()).count());
    }
    // For poll(): rounded up, so that nobody asks in a circle before its end.
    int remaining_ms() const noexcept
    {
        constexpr double kMost = 1e6;
        return static_cast<int>(std::min(remaining_s() * 1000 + 1, kMost));
    }
    // When the call came in, of the clock.
    double made_s() const noexcept
    {
        return std::chrono::duration<double>(at_.time_since_epoch()).count() - given_s_;
    }
    // What the call was given, for its message: of a remainder that was handed on, 1.99989, no more than people read.
    double given_s() const noexcept
    {
        const double step = given_s_ < 100 ? std::pow(10, std::floor(std::log10(given_s_)) - 2) : 1;
        return given_s_ > 0 ? std::round(given_s_ / step) * step : 0;
    }

private:
    static constexpr double kLongest = 1e9;  // clocks end somewhere

    explicit Deadline(double seconds)
        : at_(Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
          given_s_(seconds)
    {
    }

    Clock::time_point at_;
    double given_s_;
};

}  // namespace yoke
