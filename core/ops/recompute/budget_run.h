// budget_run.h: one forward under a memory budget (core/ops/recompute/budget.h), and the walk behind it.
//
// A scope of a budget records into a row of recordings, the segments; a cut ends one and begins the next. The run
// follows a plan as long as the same calls come; where none is known it cuts whenever more has been dropped since the
// last cut than all cuts hold, which takes little memory. Either way it takes down what calls make and read, and what
// memory and time they take.
#pragma once

#include "core/ops/recompute/budget_plan.h"
#include "core/ops/recompute/budget_times.h"
#include "core/ops/recompute/forward_profiler.h"
#include "core/ops/recompute/recording.h"
#include "core/ops/recompute/step_meter.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace yoke {

// A forward that is known, and what is done about it.
struct KnownForward {
    std::vector<uint64_t> marks;  // of each call, together with all before it
    Profile profile;
    BudgetPlan plan;
    Outlook outlook;     // of the plan
    int64_t plain = 0;   // the peak that is foreseen without a budget
    int64_t limit = 0;   // bytes
    int64_t missed = 0;  // by how much peaks were higher than foreseen, of earlier plans
    int64_t excess = 0;  // and of this one
    uint32_t plans = 0;  // that were made for it
};
using Known = std::shared_ptr<const KnownForward>;

class MemoryBudget;  // core/ops/recompute/budget.h

// Run of one forward. The thread that records calls it, and walks of any thread call its meter. The lock guards the
// list of earlier segments.
class BudgetRun final : public RefCounted {
public:
    // Begins a forward, which follows the first of the known ones whose calls come. The run holds its budget until
    // forward ends, and then calls MemoryBudget::end.
    BudgetRun(Ref<MemoryBudget> budget, std::vector<Known> known);

    // ---- In forward ----
    Recording &segment() const noexcept { return *segment_; }
    // Stand around each launch of the scope. Operands from `fresh` on are results with memory of their own.
    void begin_call(const yoke_launch &launch, Device &device, std::span<Storage *const> storages,
                    size_t fresh);
    void end_call(const yoke_launch &launch, std::span<Storage *const> storages, size_t fresh);
    // Notes that a node of the tape keeps it.
    void note_saved(const Storage &storage)
    {
        if (is_whole_) profiler_.note_saved(storage);
    }
    // Notes that each segment makes it again for itself.
    void note_imported(const Storage &storage) { profiler_.note_imported(storage); }
    // Tell whether the results of the call that runs are held; and whether those, too, that follow cheaply from others.
    bool holds() const noexcept { return holds_; }
    bool holds_all() const noexcept { return holds_all_; }
    // Copies for earlier segments what they read of it, before a call writes it.
    void keep_for_earlier(Storage &storage);
    // Forgets an earlier segment that nobody needs any more.
    void forget(const Recording &segment) noexcept;
    void finish();
    void abandon() noexcept;
    bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }

    // ---- In backward, for Replays ----
    StepMeter &meter() noexcept { return meter_; }

    // ---- Behind it ----
    // Tells whether it was walked, and all was taken down.
    bool is_known() const { return meter_.is_walked() && is_whole_; }
    bool is_walked_now() const { return meter_.is_walked_now(); }
    // Returns the forward whose calls it made, to the last.
    Known forward() const;
    // Tells whether it kept to the plan of that one.
    bool followed(const KnownForward &known) const { return plan_ == &known && !has_switched_; }
    StepFigures figures() const { return meter_.figures(); }
    // Puts down what was measured: as what the values do not explain, under the plan that this run had.
    void put_profile(KnownForward &into) const;

private:
    ~BudgetRun() override;
    void follow(uint64_t mark);
    void choose(const yoke_launch &launch);
    void cut();
    void leave_earlier() noexcept;
    Ref<Recording> make_segment();
    template <class Work>
    void take_down(Work work);

    Ref<MemoryBudget> budget_;  // while forward is open
    std::vector<Known> known_;
    const KnownForward *plan_ = nullptr;  // that is followed; null: it learns
    bool has_switched_ = false;           // from one plan to another
    Ref<Recording> segment_;
    std::mutex mutex_;
    std::vector<Recording *> ended_;  // the segments before, until forward ends
    std::atomic<bool> is_open_{true};
    bool holds_ = false, holds_all_ = false;
    bool is_whole_ = true;  // false: there was no memory to take something down
    Device *device_ = nullptr;
    ForwardProfiler profiler_;
    StepMeter meter_;
    CallClock clock_;
};

}  // namespace yoke
