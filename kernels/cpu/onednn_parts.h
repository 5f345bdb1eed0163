// Work through oneDNN in parts, each by one thread of the team.
#pragma once

#include <atomic>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/onednn_thread.h"

namespace yoke::cpu {

// Joint result of parts: any failure stays.
struct Outcome {
    std::atomic<int> status{dnnl_success};
    std::atomic<bool> done{true};

    void add(dnnl_status_t part, bool part_done)
    {
        if (part) status.store(part, std::memory_order_relaxed);
        if (!part_done) done.store(false, std::memory_order_relaxed);
    }
};

// Returns the bytes rounded up to a multiple of 64: the space of an operand in a scratch block.
inline uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

// Calls f(part, slot) for all parts, by the team. Slots are below `slots`; two parts never have the same slot at a
// time.
template <class F>
void run_parts(int64_t count, int64_t slots, const F &f)
{
    if (count == 1) return f(int64_t{0}, 0);
    run_chunks(
        count,
        [](void *context, int64_t i, int slot) { (*static_cast<const F *>(context))(i, slot); },
        const_cast<void *>(static_cast<const void *>(&f)), static_cast<int>(slots));
}

// Reports a failed use of oneDNN, such as "a product of 2 x 3 by 3 x 4". Returns YOKE_E_STATE if the process ends,
// YOKE_E_OOM if memory is missing, else YOKE_E_INTERNAL.
yoke_status fail_onednn(dnnl_status_t status, const char *use);

}  // namespace yoke::cpu
