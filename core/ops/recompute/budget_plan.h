// budget_plan.h: which results of a forward are held for backward, and where forward is cut into scopes. A step must
// fit into a memory budget and recompute as little as possible.
//
// A forward is a row of calls. A cut before a call ends a scope there. A value of an earlier call needed by later
// calls crosses the cut and is held. Backward recomputes the rest of a scope at once, when it reaches the scope. This
// file knows no tensors: a Profile describes the calls (recorded by core/ops/recompute/budget.h), and foresee()
// predicts the figures of a plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace yoke {

constexpr uint32_t kNever = UINT32_MAX;

struct ProfiledValue {
    uint64_t bytes = 0;
    uint32_t maker = 0;      // call that made the value
    uint32_t last_read = 0;  // last call that read the value, else the maker
    uint32_t last_alive =
        0;  // last call during which the script has the value; beyond forward: the number of calls
    uint32_t first_saver = kNever;  // calls whose tape nodes keep the value
    uint32_t last_saver = kNever;
};

// Call of a profile. Bytes are memory not explained by values: gradients on their way, temporary memory of kernels,
// the script's own memory.
struct ProfiledCall {
    double seconds = 0;
    uint32_t reads = 0, makes = 0, end = 0;  // Profile::operands: [reads, makes) and [makes, end)
    uint32_t needs = kNever;  // results are held only if this call's results are held
    bool can_cut = true;      // whether a segment may end before this call
    bool can_hold = true;
    int64_t in_forward = 0;
    int64_t before_node = 0;  // as backward comes to its node
    int64_t in_node = 0;      // at most, while that runs
};

struct Profile {
    std::vector<ProfiledCall> calls;
    std::vector<ProfiledValue> values;
    std::vector<uint32_t>
        operands;         // values read by calls; values made or changed in place by calls
    int64_t at_turn = 0;  // between forward and the first node
    std::span<const uint32_t> reads(uint32_t call) const
    {
        return {operands.data() + calls[call].reads, operands.data() + calls[call].makes};
    }
    std::span<const uint32_t> makes(uint32_t call) const
    {
        return {operands.data() + calls[call].makes, operands.data() + calls[call].end};
    }
};

// Decisions for each call: whether a scope ends before the call, and whether its results are held.
struct BudgetPlan {
    std::vector<uint8_t> cuts, holds;
};

struct Outlook {
    int64_t peak = 0;    // bytes
    int64_t held = 0;    // from forward to backward
    double seconds = 0;  // spent by backward on recomputing values
    uint32_t cuts = 0;
};

// Bytes of the values under a plan, by call, and the figures of the plan.
struct Levels {
    std::vector<int64_t> in_forward, before_node, in_node;
    int64_t at_turn = 0;
    Outlook outlook;
};
Levels explain(const Profile &profile, const BudgetPlan &plan);
Outlook foresee(const Profile &profile, const BudgetPlan &plan);

// Returns a plan that drops nothing: the step without a budget.
BudgetPlan hold_all(const Profile &profile);

// Returns the fastest plan found with a predicted peak of at most `bytes`; without such a plan, the plan with the
// lowest peak.
BudgetPlan find_plan(const Profile &profile, int64_t bytes);

}  // namespace yoke
