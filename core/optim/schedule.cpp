#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace yoke {

namespace {

constexpr double kPi = 3.141592653589793;

// Returns a point of half a cosine, from start (part 0) to end (part 1).
double anneal(double start, double end, double part)
{
    return end + (start - end) / 2 * (1 + std::cos(kPi * std::clamp(part, 0.0, 1.0)));
}

}  // namespace

double schedule_linear(double start, double end, int64_t total_steps, int64_t step) noexcept
{
    if (total_steps <= 0) return end;
    const double done =
        std::clamp(static_cast<double>(step) / static_cast<double>(total_steps), 0.0, 1.0);
    return start + (end - start) * done;
}

double schedule_constant(double base, double factor, int64_t total_steps, int64_t step) noexcept
{
    return step < total_steps ? base * factor : base;
}

double schedule_cosine(double base, double end, int64_t total_steps, int64_t warmup_steps,
                       int64_t step) noexcept
{
    // As doubles: the difference of two steps need not fit in an int64.
    const auto warmup = static_cast<double>(std::max<int64_t>(warmup_steps, 0));
    const auto at = static_cast<double>(std::max<int64_t>(step, 0));
    const double length = static_cast<double>(total_steps) - warmup;
    if (step < warmup_steps) return base * (at + 1) / (warmup + 1);
    return length > 0 ? anneal(base, end, (at - warmup) / length) : end;
}

double schedule_step(double base, int64_t step_size, double gamma, int64_t step) noexcept
{
    if (step_size <= 0) return base;
    return base * std::pow(gamma, static_cast<double>(std::max<int64_t>(step, 0) / step_size));
}

double schedule_one_cycle(double max, int64_t total_steps, double pct_start, double div,
                          double final_div, int64_t step) noexcept
{
    const double start = max / div, last = start / final_div;
    const double peak = pct_start * static_cast<double>(total_steps) - 1;
    const double at = static_cast<double>(step), end = static_cast<double>(total_steps) - 1;
    if (at <= peak) return peak > 0 ? anneal(start, max, at / peak) : max;
    return end > peak ? anneal(max, last, (at - peak) / (end - peak)) : last;
}

}  // namespace yoke
