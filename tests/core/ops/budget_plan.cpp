// The search for plans of a memory budget, beside all plans that there are for small forwards.
#include "core/ops/recompute/budget_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace yoke {
namespace {

class Forward {
public:
    // Reads values, and makes some of so many bytes; returns the first of these.
    uint32_t call(double seconds, const std::vector<uint32_t> &reads,
                  const std::vector<uint64_t> &makes, int64_t in_node)
    {
        const auto at = static_cast<uint32_t>(profile.calls.size());
        ProfiledCall call;
        call.seconds = seconds;
        call.reads = static_cast<uint32_t>(profile.operands.size());
        for (const uint32_t v : reads) {
            profile.operands.push_back(v);
            profile.values[v].last_read = profile.values[v].last_alive = at;
        }
        call.makes = static_cast<uint32_t>(profile.operands.size());
        const auto first = static_cast<uint32_t>(profile.values.size());
        for (const uint64_t bytes : makes) {
            profile.operands.push_back(static_cast<uint32_t>(profile.values.size()));
            profile.values.push_back({bytes, at, at, at, kNever, kNever});
        }
        call.end = static_cast<uint32_t>(profile.operands.size());
        call.in_node = in_node;
        profile.calls.push_back(call);
        return first;
    }
    // Makes the last call's node save a value.
    void save(uint32_t v)
    {
        const auto at = static_cast<uint32_t>(profile.calls.size()) - 1;
        if (profile.values[v].first_saver == kNever) profile.values[v].first_saver = at;
        profile.values[v].last_saver = at;
    }
    Profile profile;
};

// Blocks of x + down(act(up(x))), as those of a transformer's half.
Profile blocks(int count)
{
    Forward f;
    uint32_t x = f.call(0.1, {}, {2}, 2);
    for (int k = 0; k < count; ++k) {
        const uint32_t up = f.call(1, {x}, {8}, 8);
        f.save(x);
        const uint32_t act = f.call(0.1, {up}, {8}, 8);
        f.save(up);
        const uint32_t down = f.call(1, {act}, {2}, 10);
        f.save(act);
        x = f.call(0.05, {x, down}, {2}, 2);
    }
    return f.profile;
}

Profile random_forward(std::mt19937 &random)
{
    Forward f;
    const auto below = [&](uint32_t n) { return random() % n; };
    const uint32_t calls = 3 + below(4);
    for (uint32_t i = 0; i < calls; ++i) {
        std::vector<uint32_t> reads;
        const auto values = static_cast<uint32_t>(f.profile.values.size());
        if (values) reads.push_back(values - 1);
        if (values > 1 && below(2)) reads.push_back(below(values));
        std::vector<uint64_t> makes{1 + below(8)};
        if (below(4) == 0) makes.push_back(1 + below(3));
        f.call(1 + below(5), reads, makes, below(4));
        for (const uint32_t v : reads)
            if (below(3)) f.save(v);
        if (below(4) == 0) f.save(static_cast<uint32_t>(f.profile.values.size()) - 1);
    }
    return f.profile;
}

// Finds the fastest of all plans within `bytes`; returns false if no plan fits.
bool best_of_all(const Profile &profile, int64_t bytes, Outlook &best)
{
    const auto count = static_cast<uint32_t>(profile.calls.size());
    bool found = false;
    for (uint32_t cuts = 0; cuts < 1u << count; cuts += 2)
        for (uint32_t holds = 0; holds < 1u << count; ++holds) {
            BudgetPlan plan;
            for (uint32_t i = 0; i < count; ++i) {
                plan.cuts.push_back(cuts >> i & 1);
                plan.holds.push_back(holds >> i & 1);
            }
            const Outlook outlook = foresee(profile, plan);
            if (outlook.peak > bytes || (found && outlook.seconds >= best.seconds)) continue;
            best = outlook;
            found = true;
        }
    return found;
}

TEST(BudgetPlan, HoldsAllWhereAllFits)
{
    const Profile profile = blocks(4);
    const Outlook all = foresee(profile, hold_all(profile));
    EXPECT_EQ(all.seconds, 0);
    EXPECT_EQ(all.cuts, 0u);
    const Outlook found = foresee(profile, find_plan(profile, all.peak));
    EXPECT_EQ(found.seconds, 0);
    EXPECT_EQ(found.peak, all.peak);
}

// Only inputs of blocks are held. The rest is recomputed, a block at a time.
TEST(BudgetPlan, CountsWhatAScopeOfEachBlockTakes)
{
    const Profile profile = blocks(4);
    BudgetPlan plan{std::vector<uint8_t>(profile.calls.size()),
                    std::vector<uint8_t>(profile.calls.size())};
    for (size_t i = 5; i < profile.calls.size(); i += 4) plan.cuts[i] = 1;
    const Outlook outlook = foresee(profile, plan);
    EXPECT_EQ(outlook.cuts, 3u);
    EXPECT_EQ(outlook.held, 3 * 2);
    // Peak in the last block: the inputs of three blocks, the recomputed values, and memory of the product's node.
    EXPECT_EQ(outlook.peak, 3 * 2 + 8 + 8 + 10);
    // Products and activations, and the op of the first x.
    EXPECT_NEAR(outlook.seconds, 4 * 1.1 + 0.1, 1e-9);
}

TEST(BudgetPlan, UsesABudgetWell)
{
    const Profile profile = blocks(16);
    const auto all = static_cast<double>(foresee(profile, hold_all(profile)).peak);
    double before = 1e9;
    for (const double share : {0.2, 0.3, 0.5, 0.7, 0.9}) {
        const auto bytes = static_cast<int64_t>(share * all);
        const Outlook outlook = foresee(profile, find_plan(profile, bytes));
        EXPECT_LE(outlook.peak, bytes) << share;
        EXPECT_GE(static_cast<double>(outlook.peak), 0.9 * static_cast<double>(bytes)) << share;
        EXPECT_LT(outlook.seconds, before) << share;
        before = outlook.seconds;
        // If each block held all or nothing, half of the memory would cost half of 16 * 1.1.
        if (share == 0.5) {
            EXPECT_LT(outlook.seconds, 0.4 * 16 * 1.1);
        }
    }
}

TEST(BudgetPlan, GivesTheLeastWhereABudgetIsOutOfReach)
{
    const Profile profile = blocks(16);
    const Outlook least = foresee(profile, find_plan(profile, 1));
    EXPECT_LT(least.peak, foresee(profile, hold_all(profile)).peak / 5);
    // The least peak is a valid budget, and the plan keeps to this budget.
    EXPECT_LE(foresee(profile, find_plan(profile, least.peak)).peak, least.peak);
    // Budgets of 0 and below arise if peaks exceed the foreseen peak by more than the budget.
    for (const int64_t bytes : {int64_t{0}, int64_t{-1}, -least.peak})
        EXPECT_EQ(foresee(profile, find_plan(profile, bytes)).peak, least.peak);
}

TEST(BudgetPlan, ComesNearTheBestOfAllPlans)
{
    std::mt19937 random(7);
    int near = 0, feasible = 0;
    for (int trial = 0; trial < 300; ++trial) {
        const Profile profile = random_forward(random);
        const int64_t all = foresee(profile, hold_all(profile)).peak;
        const int64_t bytes = all * static_cast<int64_t>(40 + random() % 60) / 100;
        Outlook best;
        const Outlook found = foresee(profile, find_plan(profile, bytes));
        if (!best_of_all(profile, bytes, best)) {
            EXPECT_GT(found.peak, bytes) << trial;
            continue;
        }
        ++feasible;
        near += found.peak <= bytes && found.seconds <= best.seconds * 1.25 + 1e-9;
    }
    EXPECT_GT(feasible, 50);
    EXPECT_GT(near * 100, feasible * 90) << near << " of " << feasible;
}

TEST(BudgetPlan, KnowsWhatIsHeldOnlyBehindAnother)
{
    Profile profile = blocks(2);
    for (size_t i = 0; i < profile.calls.size(); ++i)
        if (i % 4 == 2) {
            profile.calls[i].needs = static_cast<uint32_t>(i) - 1;
            profile.calls[i].can_cut = false;
        }
    const int64_t all = foresee(profile, hold_all(profile)).peak;
    for (int64_t bytes = all / 4; bytes < all; ++bytes) {
        const BudgetPlan plan = find_plan(profile, bytes);
        for (size_t i = 0; i < profile.calls.size(); ++i) {
            if (profile.calls[i].needs == kNever) continue;
            EXPECT_FALSE(plan.cuts[i]);
            EXPECT_LE(plan.holds[i], plan.holds[profile.calls[i].needs]);
        }
    }
}

}  // namespace
}  // namespace yoke
