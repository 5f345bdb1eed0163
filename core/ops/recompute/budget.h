// budget.h: how much memory a step's activations may take; what is held, and where forward is cut, is found.
//
// The first run of a forward drops all that it can, and takes down what it does (core/ops/recompute/budget_run.h). From
// that a plan is made (core/ops/recompute/budget_plan.h), which later steps follow, and which is made anew where their
// figures say so. A forward of other ops or shapes has a plan of its own. No value depends on any of it.
#pragma once

#include "core/ops/recompute/budget_run.h"

#include <mutex>
#include <string_view>
#include <vector>

namespace yoke {

// Of the last step whose forward was known; of two figures the first is foreseen, the second measured.
struct BudgetReport {
    int64_t steps = 0, forwards = 0;    // that were run; that are known
    int64_t limit = 0, plain_peak = 0;  // 0: nothing is known yet
    int64_t cuts = 0;
    int64_t held[2] = {}, peak[2] = {};
    double seconds[2] = {};
};

class MemoryBudget final : public RefCounted {
public:
    // "0.5": that share of the peak without it; "2GiB". Raises VALUE for `call`.
    static Ref<MemoryBudget> make(std::string_view amount, const char *call);

    // A forward begins. Raises STATE while another one of this budget is open.
    Ref<BudgetRun> begin(const char *call);
    // For the run, once its forward ends.
    void end() noexcept;
    BudgetReport report();

private:
    MemoryBudget(double share, int64_t bytes) : share_(share), bytes_(bytes) {}
    void settle_last();
    void learn(const BudgetRun &run);
    void make_plan(KnownForward &known) const;
    void tell_least(const KnownForward &known);

    const double share_;  // 0: bytes are named
    const int64_t bytes_;
    std::mutex mutex_;
    bool is_open_ = false, has_told_ = false;
    int64_t steps_ = 0;
    Ref<BudgetRun> last_;
    std::vector<std::shared_ptr<KnownForward>> known_;  // the last used first
    StepFigures figures_;                               // of the last step of the first of these
};

}  // namespace yoke
