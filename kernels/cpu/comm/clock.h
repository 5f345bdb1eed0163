// Deadline of a call, and the time left for a wait.
#pragma once

#include <time.h>

#include <cstdint>

namespace yoke::cpu::comm {

inline int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

class Deadline {
public:
    // Sets the deadline to `seconds` from now. A number below 0 means no deadline.
    explicit Deadline(double seconds)
        : at_(seconds < 0 || seconds > 1e9 ? INT64_MAX
                                           : now_ns() + static_cast<int64_t>(seconds * 1e9))
    {
    }

    bool passed() const { return at_ != INT64_MAX && now_ns() >= at_; }
    // Returns the nanoseconds left: `most` at most and never below 0. Without a deadline returns `most`.
    int64_t left(int64_t most) const
    {
        if (at_ == INT64_MAX) return most;
        const int64_t rest = at_ - now_ns();
        return rest < 0 ? 0 : rest < most ? rest : most;
    }

private:
    int64_t at_;
};

}  // namespace yoke::cpu::comm
