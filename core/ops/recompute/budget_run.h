// budget_run.h: a forward under a memory budget (core/ops/recompute/budget.h), and the walk behind the forward.
//
// A scope of a budget records into a row of recordings, the segments; a cut ends a segment and begins the next. The
// run follows a plan as long as the same calls come. Without a plan, the run cuts as soon as the bytes dropped since
// the last cut exceed the bytes held by all cuts, which takes little memory. In both cases, the run records the
// values made and read by calls, and the calls' memory and time.
//
// Example: four blocks in a scope with MemoryBudget(0.5). A block reads 1 MiB from the block before, and its gradient
// needs 8 MiB that the block makes. Without a budget the peak is above 32 MiB.
//  1. Step 1 has no plan. begin_call() and end_call() stand around each launch. The segment logs the launch, and
//     profiler_ notes sizes, times, and the nodes that keep values.
//  2. choose() asks is_cut_due(). Behind block 1, 8 MiB are dropped and no cut holds bytes: cut() ends the segment. The
//     new segment holds its input of 1 MiB. Behind block 2 the next 8 MiB exceed 1 MiB, and so on: four segments.
//  3. Backward restores the last segment, 8 MiB, releases it, and goes on to the segment before.
//  4. Step 2 begins. MemoryBudget::learn() makes a KnownForward of the run: marks, profile, and the time of each call.
//     make_plan() calls find_plan() with half of the plain peak. Such a plan may keep the values of block 4, which
//     backward needs first, and recompute the others.
//  5. follow() compares the mark of each call with the marks of the plan. choose() cuts and holds as planned.
//  6. If a call differs, follow() takes another known forward, or none: then the run learns as in step 1.
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

// Known forward, with its plan.
struct KnownForward {
    std::vector<uint64_t> marks;  // by call; a mark includes all calls before
    Profile profile;
    BudgetPlan plan;
    Outlook outlook;     // figures of the plan
    int64_t plain = 0;   // the peak that is foreseen without a budget
    int64_t limit = 0;   // bytes
    int64_t missed = 0;  // by how much peaks were higher than foreseen, of earlier plans
    int64_t excess = 0;  // excess of this plan
    uint32_t plans = 0;  // plans made so far
};
using Known = std::shared_ptr<const KnownForward>;

class MemoryBudget;  // core/ops/recompute/budget.h

// Run of a forward. The recording thread calls the run, and walks of any thread call its meter. The lock guards the
// list of earlier segments.
class BudgetRun final : public RefCounted {
public:
    // Begins a forward, which follows the first known forward with the same calls. The run holds its budget until
    // forward ends, and then calls MemoryBudget::end.
    BudgetRun(Ref<MemoryBudget> budget, std::vector<Known> known);

    // ---- In forward ----
    Recording &segment() const noexcept { return *segment_; }
    // Runs before each launch of the scope, and end_call() after it: record the call, and choose cuts and held
    // results. Operands from `fresh` on are results with memory of their own.
    void begin_call(const yoke_launch &launch, Device &device, std::span<Storage *const> storages,
                    size_t fresh);
    void end_call(const yoke_launch &launch, std::span<Storage *const> storages, size_t fresh);
    // Notes that a tape node keeps the storage.
    void note_saved(const Storage &storage)
    {
        if (is_whole_) profiler_.note_saved(storage);
    }
    // Notes that each segment recomputes the storage for itself.
    void note_imported(const Storage &storage) { profiler_.note_imported(storage); }
    // Returns whether the results of the running call are held. holds_all: also the results that follow cheaply from
    // others.
    bool holds() const noexcept { return holds_; }
    bool holds_all() const noexcept { return holds_all_; }
    // Copies the storage for earlier segments that read it, before a call writes the storage.
    void keep_for_earlier(Storage &storage);
    // Forgets an earlier segment without holders.
    void forget(const Recording &segment) noexcept;
    void finish();
    void abandon() noexcept;
    bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }

    // ---- In backward, for Replays ----
    StepMeter &meter() noexcept { return meter_; }

    // ---- After the step ----
    // Returns whether the step was walked, and the record is complete.
    bool is_known() const { return meter_.is_walked() && is_whole_; }
    bool is_walked_now() const { return meter_.is_walked_now(); }
    // Returns the known forward with exactly the calls of this run, or null.
    Known forward() const;
    // Returns whether the run followed the plan of this forward throughout.
    bool followed(const KnownForward &known) const { return plan_ == &known && !has_switched_; }
    StepFigures figures() const { return meter_.figures(); }
    // Stores the measurements under this run's plan, as memory not explained by values.
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
    const KnownForward *plan_ = nullptr;  // plan to follow; null: the run learns
    bool has_switched_ = false;           // from one plan to another
    Ref<Recording> segment_;
    std::mutex mutex_;
    std::vector<Recording *> ended_;  // the segments before, until forward ends
    std::atomic<bool> is_open_{true};
    bool holds_ = false, holds_all_ = false;
    bool is_whole_ = true;  // false: memory ran out while a call was recorded
    Device *device_ = nullptr;
    ForwardProfiler profiler_;
    StepMeter meter_;
    CallClock clock_;
};

}  // namespace yoke
