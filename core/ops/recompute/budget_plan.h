// budget_plan.h: which results of a forward are held for backward, and where it is cut into scopes, so that a step fits
// into a memory budget and makes as little as possible again.
//
// A forward is a row of calls. A cut before a call ends a scope there: what later calls need of earlier ones is held
// (it crosses), and backward makes the rest of one scope again at once, when it comes to it. This file knows no
// tensors: a Profile says what the calls were (core/ops/recompute/budget.h takes it down), foresee() what a plan would
// come to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace yoke {

constexpr uint32_t kNever = UINT32_MAX;

struct ProfiledValue {
    uint64_t bytes = 0;
    uint32_t maker = 0;      // the call that made it
    uint32_t last_read = 0;  // the last call that read it, else its maker
    uint32_t last_alive =
        0;  // the script has it until that call; longer than forward: their number
    uint32_t first_saver = kNever;  // the calls whose nodes of the tape keep it
    uint32_t last_saver = kNever;
};

// Bytes are what the values do not explain: gradients on their way, what kernels take for a time, the script's own.
struct ProfiledCall {
    double seconds = 0;
    uint32_t reads = 0, makes = 0, end = 0;  // Profile::operands: [reads, makes) and [makes, end)
    uint32_t needs = kNever;  // its results are held only where those of that call are
    bool can_cut = true;      // before it
    bool can_hold = true;
    int64_t in_forward = 0;
    int64_t before_node = 0;  // as backward comes to its node
    int64_t in_node = 0;      // at most, while that runs
};

struct Profile {
    std::vector<ProfiledCall> calls;
    std::vector<ProfiledValue> values;
    std::vector<uint32_t> operands;  // values that calls read; that they make, or change in place
    int64_t at_turn = 0;             // between forward and the first node
    std::span<const uint32_t> reads(uint32_t call) const
    {
        return {operands.data() + calls[call].reads, operands.data() + calls[call].makes};
    }
    std::span<const uint32_t> makes(uint32_t call) const
    {
        return {operands.data() + calls[call].makes, operands.data() + calls[call].end};
    }
};

// For each call: whether a scope ends before it, and whether its results are held.
struct BudgetPlan {
    std::vector<uint8_t> cuts, holds;
};

struct Outlook {
    int64_t peak = 0;    // bytes
    int64_t held = 0;    // from forward to backward
    double seconds = 0;  // that backward spends on making values again
    uint32_t cuts = 0;
};

// What the values take under a plan, by call, and what it comes to.
struct Levels {
    std::vector<int64_t> in_forward, before_node, in_node;
    int64_t at_turn = 0;
    Outlook outlook;
};
Levels explain(const Profile &profile, const BudgetPlan &plan);
Outlook foresee(const Profile &profile, const BudgetPlan &plan);

// Nothing is dropped: the step as it is without a budget.
BudgetPlan hold_all(const Profile &profile);

// The plan of least time, as far as it was found, of which a peak of at most so many bytes is foreseen; where there is
// none, the one of the least peak.
BudgetPlan find_plan(const Profile &profile, int64_t bytes);

}  // namespace yoke
