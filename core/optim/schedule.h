// schedule.h: learning rates over time, as plain arithmetic. Steps count from 0; formulas are PyTorch's. Any number may
// come: a step below 0 is the first, a NaN gives a NaN or the last rate.
#pragma once

#include <cstdint>

namespace yoke {

// start + (end - start) * step / total, held at both ends.
double schedule_linear(double start, double end, int64_t total_steps, int64_t step) noexcept;

// factor * base before step total_steps, then base.
double schedule_constant(double base, double factor, int64_t total_steps, int64_t step) noexcept;

// Up from base / (warmup + 1) to base in warmup_steps equal steps, then half a cosine down to `end` at total_steps,
// which is held.
double schedule_cosine(double base, double end, int64_t total_steps, int64_t warmup_steps,
                       int64_t step) noexcept;

// base * gamma^floor(step / step_size).
double schedule_step(double base, int64_t step_size, double gamma, int64_t step) noexcept;

// The 1cycle policy (L. Smith and N. Topin, 2017): from max / div up to max during pct_start of total_steps, then down
// to max / div / final_div, both along half a cosine; held after that.
double schedule_one_cycle(double max, int64_t total_steps, double pct_start, double div,
                          double final_div, int64_t step) noexcept;

}  // namespace yoke
