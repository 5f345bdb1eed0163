// random.h: state of a thread's random numbers: a Philox seed and a counter (kernels/common/philox.h).
//
// Each thread has a stream of its own, so a program with threads stays reproducible. The thread that calls
// manual_seed starts at the seed itself. Every other thread starts at the seed mixed with its order of first use.
#pragma once

#include "core/base/thread_state.h"

namespace yoke {

// Maps neighbouring numbers to unrelated numbers, by the finaliser of SplitMix64; next_mixed gives the next number of
// a stream.
// Source: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014.
constexpr uint64_t mix(uint64_t x) noexcept
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15u;
constexpr uint64_t next_mixed(uint64_t &state) noexcept
{
    return mix(state += kMixStep);
}

// Starts the calling thread's stream at the seed, and restarts the streams of threads that never seeded themselves.
void manual_seed(uint64_t seed) noexcept;

// Returns how many counters a draw of `elements` takes: two elements a counter is the most that any distribution uses.
constexpr uint64_t counters_of(int64_t elements) noexcept
{
    return (static_cast<uint64_t>(elements) + 1) / 2;
}

// Returns the start of the counters for a draw of `elements`, and moves the calling thread's stream behind these
// counters.
RandomState reserve_random(int64_t elements) noexcept;

// Returns the position of the calling thread's stream; set_random_state() moves the stream. A moved stream is the
// thread's own from then on: another thread's manual_seed does not move it.
RandomState random_state() noexcept;
void set_random_state(RandomState at) noexcept;

}  // namespace yoke
