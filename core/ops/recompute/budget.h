// budget.h: memory limit for a step's activations; the budget chooses the held results and the cuts of forward.
//
// The first run of a forward drops as much as possible, and records its calls (core/ops/recompute/budget_run.h). A
// plan is made from this record (core/ops/recompute/budget_plan.h). Later steps follow the plan; if their figures
// require, a new plan is made. A forward with other ops or shapes has a plan of its own. Values never depend on the
// plan.
#pragma once

#include "core/ops/recompute/budget_run.h"

#include <mutex>
#include <string_view>
#include <vector>

namespace yoke {

// Report on the last step with a known forward. In a pair of figures, the first is predicted, the second measured.
struct BudgetReport {
    int64_t steps = 0, forwards = 0;    // steps run so far; known forwards
    int64_t limit = 0, plain_peak = 0;  // 0: nothing is known yet
    int64_t cuts = 0;
    int64_t held[2] = {}, peak[2] = {};
    double seconds[2] = {};
};

class MemoryBudget final : public RefCounted {
public:
    // Makes a budget. "0.5": this share of the peak without a budget; or "2GiB". Raises VALUE for `call`.
    static Ref<MemoryBudget> make(std::string_view amount, const char *call);

    // Begins a forward and returns its run. Raises STATE while another forward of this budget is open.
    Ref<BudgetRun> begin(const char *call);
    // Notes that the open forward has ended. Called by the run.
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
    StepFigures figures_;  // figures of the last step of the first forward
};

}  // namespace yoke
