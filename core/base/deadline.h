// deadline.h: time until which a call may wait. The entry of a call makes the deadline once and hands it down, so all
// steps of the call together take no longer than the given time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace yoke {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    // Makes a deadline `seconds` from now; below 0 counts as 0.
    static Deadline after(double seconds) { return Deadline(std::clamp(seconds, 0., kLongest)); }
    static Deadline never() { return Deadline(kLongest); }
    // Returns the earlier of this deadline and `seconds` from now.
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
    // Returns the remaining time for poll(), rounded up, so that a caller does not poll in a busy loop just before
    // the end.
    int remaining_ms() const noexcept
    {
        constexpr double kMost = 1e6;
        return static_cast<int>(std::min(remaining_s() * 1000 + 1, kMost));
    }
    // Returns the clock's time at which the deadline was made.
    double made_s() const noexcept
    {
        return std::chrono::duration<double>(at_.time_since_epoch()).count() - given_s_;
    }
    // Returns the time given to the call, for messages. A passed-on remainder such as 1.99989 is rounded to a
    // readable number.
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
