// random.h: where the random numbers of a thread stand: a Philox seed and a counter (kernels/common/philox.h).
//
// Each thread has a stream of its own, so that a program with threads stays reproducible: the thread that calls
// manual_seed starts at the seed itself, every other one at a seed mixed with its order of first use.
#pragma once

#include "core/base/thread_state.h"

namespace yoke {

// Starts the calling thread's stream at the seed, and anew those of threads that never seeded themselves.
void manual_seed(uint64_t seed) noexcept;

// Takes the counters that a draw of `elements` uses, and moves the calling thread's stream behind them.
RandomState reserve_random(int64_t elements) noexcept;

// Where the calling thread's stream stands. A stream that is put somewhere is the thread's own from then on: another
// thread's manual_seed does not move it.
RandomState random_state() noexcept;
void set_random_state(RandomState at) noexcept;

}  // namespace yoke
