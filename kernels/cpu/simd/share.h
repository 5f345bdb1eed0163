// Shares of rows: for large units of work, of which a few are already worth a team.
#pragma once

#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

// Calls f(begin, end) for shares of [0, n), by the team. A share has at least `grain` units, and any bounds
// (parallel_range cuts at multiples of 64). For work whose result does not depend on the cut.
template <class F>
inline void parallel_shares(int64_t n, int64_t grain, const F &f)
{
    if (n < 2 * grain) return n > 0 ? f((int64_t)0, n) : (void)0;
    int64_t shares = fine_chunks(n / grain), share = divide_up(n, shares);
    parallel_items(divide_up(n, share), [&](int64_t i) { f(i * share, min(n, (i + 1) * share)); });
}

// Calls f(begin, end, slot) for shares of [0, n), with memory for each slot; see parallel_slots.
template <class F>
inline void parallel_shares(int64_t n, int64_t grain, int64_t slots, const F &f)
{
    if (n < 2 * grain) return n > 0 ? f((int64_t)0, n, 0) : (void)0;
    int64_t shares = fine_chunks(n / grain), share = divide_up(n, shares);
    parallel_slots(divide_up(n, share), slots,
                   [&](int64_t i, int slot) { f(i * share, min(n, (i + 1) * share), slot); });
}

YOKE_SIMD_END
