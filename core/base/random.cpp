#include "core/base/random.h"

#include <atomic>

namespace yoke {

namespace {

// Seed until the program seeds: runs repeat, as in PyTorch.
constexpr uint64_t kDefaultSeed = 0x59'6f'6b'65;  // "Yoke"

// Epoch of a self-seeded thread: other threads do not change the stream.
constexpr uint64_t kOwnSeed = UINT64_MAX;

std::atomic<uint64_t> process_seed{kDefaultSeed};
std::atomic<uint64_t> seeding_epoch{1};
std::atomic<uint64_t> next_thread{0};

// Returns the calling thread's stream, started at its first use after seeding.
RandomState &own_stream() noexcept
{
    ThreadState &state = thread_state();
    const uint64_t epoch = seeding_epoch.load(std::memory_order_relaxed);
    if (state.random_epoch != epoch && state.random_epoch != kOwnSeed) {
        const uint64_t thread = next_thread.fetch_add(1);
        const uint64_t seed = process_seed;
        state.random = {thread ? mix(seed + thread * kMixStep) : seed, 0};
        state.random_epoch = epoch;
    }
    return state.random;
}

}  // namespace

void manual_seed(uint64_t seed) noexcept
{
    process_seed = seed;
    next_thread = 1;
    set_random_state({seed, 0});
    seeding_epoch.fetch_add(1);
}

RandomState reserve_random(int64_t elements) noexcept
{
    RandomState &stream = own_stream();
    const RandomState taken = stream;
    stream.offset += counters_of(elements);
    return taken;
}

RandomState random_state() noexcept
{
    return own_stream();
}

void set_random_state(RandomState at) noexcept
{
    ThreadState &state = thread_state();
    state.random = at;
    state.random_epoch = kOwnSeed;
}

}  // namespace yoke
