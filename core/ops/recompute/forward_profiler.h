// forward_profiler.h: records the profile of a forward under a memory budget: the values made and read by calls, and
// the values kept by their nodes.
#pragma once

#include "core/device/device.h"
#include "core/ops/recompute/budget_plan.h"
#include "core/ops/recompute/logged_call.h"

#include <span>
#include <vector>

namespace yoke {

// Profiler of a forward. The recording thread calls the profiler, and after the end of forward the planning thread,
// so there is no lock. A call may raise bad_alloc; then the profile is useless.
class ForwardProfiler {
public:
    ForwardProfiler();

    // Returns a hash of the next launch's op, dtypes and shapes, and of all calls before.
    uint64_t mark_of_next(const yoke_launch &launch) const;
    // Takes the device of the first call, which is about to run; only memory of this device counts.
    void start(Device &device) { device_ = &device; }
    // Records a launch about to run. Operands from `fresh` on are results with memory of their own. `is_held`: the
    // results are held. `learns`: the profiler watches how long the script has values.
    void begin_call(const yoke_launch &launch, std::span<Storage *const> storages, size_t fresh,
                    bool is_held, bool learns);
    // Records the results of the finished launch. Returns whether a result follows cheaply from another, and so is a
    // call of its own. `holds_cheap`: this result is held.
    bool end_call(const yoke_launch &launch, std::span<Storage *const> storages, size_t fresh,
                  double seconds, bool holds_cheap);
    // Notes that a tape node keeps the storage.
    void note_saved(const Storage &storage);
    // Notes that each segment recomputes the storage for itself.
    void note_imported(const Storage &storage);
    // Begins a segment with the next call.
    void note_cut();
    // Ends forward. `has_learned`: values still used by the script count as alive beyond forward.
    void end_forward(bool has_learned);

    // Returns whether more bytes were dropped since the last cut than all cuts hold.
    bool is_cut_due() const { return dropped_ > crossing_; }
    const std::vector<uint64_t> &marks() const { return marks_; }  // by call
    const Profile &profile() const { return profile_; }
    const BudgetPlan &done() const { return done_; }  // decisions for each call

private:
    void add_call(uint64_t mark, bool is_held);
    void add_reads(const yoke_launch &launch, std::span<Storage *const> storages, size_t fresh);
    void add_result(const Storage &storage);
    void add_cheap(const Storage &from, const Storage &to, bool is_held);
    void note_deaths();
    void note_crossing(uint32_t v);
    uint32_t value_in(const Storage *storage) const;
    uint32_t last_call() const { return static_cast<uint32_t>(profile_.calls.size()) - 1; }

    const uint64_t number_;  // never another profiler's
    Device *device_ = nullptr;
    bool learns_ = false;
    Profile profile_;
    std::vector<uint64_t> marks_;
    BudgetPlan done_;
    std::vector<uint8_t> is_crossing_;  // by value: read behind a cut
    std::vector<Ref<Value>> values_;    // values of the profile, while the profiler learns
    std::vector<uint32_t> alive_;       // indices into values_
    uint32_t segment_begin_ = 0;
    int64_t dropped_ = 0, crossing_ = 0;  // bytes since the last cut; behind all cuts
};

}  // namespace yoke
