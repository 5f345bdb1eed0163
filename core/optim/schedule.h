// schedule.h: learning rates over time, as plain arithmetic. Steps count from 0; formulas are PyTorch's. Any number may
// come: a step below 0 is the first, a NaN gives a NaN or the last rate.
#pragma once

#include <cstdint>

namespace yoke {

// Returns start + (end - start) * step / total_steps; before and after the steps, returns start or end.
double schedule_linear(double start, double end, int64_t total_steps, int64_t step) noexcept;

// Returns factor * base before step total_steps, then base.
double schedule_constant(double base, double factor, int64_t total_steps, int64_t step) noexcept;

// Returns the rate of a step. The rate rises from base / (warmup_steps + 1) to base in warmup_steps equal steps. Then
// it falls along half a cosine to `end` at total_steps, and stays there.
double schedule_cosine(double base, double end, int64_t total_steps, int64_t warmup_steps,
                       int64_t step) noexcept;

// Returns base * gamma^floor(step / step_size); base if step_size is not above 0.
double schedule_step(double base, int64_t step_size, double gamma, int64_t step) noexcept;

// Returns the rate of a step by the 1cycle policy (L. Smith and N. Topin, 2017). The rate rises from max / div to max
// during pct_start of total_steps. Then it falls to max / div / final_div; both along half a cosine. Later steps have
// the last rate.
double schedule_one_cycle(double max, int64_t total_steps, double pct_start, double div,
                          double final_div, int64_t step) noexcept;

}  // namespace yoke
