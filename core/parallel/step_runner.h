// step_runner.h: the successive steps of a module.
#pragma once

#include "core/parallel/backward_gate.h"
#include "core/parallel/param_writes.h"
#include "core/parallel/step.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace yoke {

// Makes a step for each backward in the gate, and ends the step: the group counts backward passes, and a failure ends
// the group. The thread of a backward calls the functions, as in LeafWatcher. The gate keeps other threads out, so
// there is no lock here.
class StepRunner {
public:
    StepRunner(BucketLayout &layout, Compression &compression, BackwardGate &gate,
               ParamWrites &writes);
    StepRunner(const StepRunner &) = delete;
    StepRunner &operator=(const StepRunner &) = delete;

    // Sets the number of the module in its group, which steps send to the other ranks.
    void set_module_number(int64_t number) noexcept { module_ = number; }

    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest);
    // Opens a synced step between the steps of other modules of the group. Both arguments may be null.
    void open(StepRunner *before, StepRunner *after);
    void arrive(LeafNode &leaf, Tensor gradient) { step_->arrive(leaf, std::move(gradient)); }
    void end();
    void fail() noexcept;
    void refuse() noexcept;
    // Returns whether there is a step synced over this group.
    bool is_synced_over(const Group &group) const noexcept;

    // Takes part in a whole backward of the other ranks, on a rank out of data. Returns false if all ranks are out of
    // data.
    bool answer();

private:
    void claim(uint64_t oldest);
    void finish();
    void release(Backwards::End how) noexcept;

    Group &group_;
    BucketLayout &layout_;
    Compression &compression_;
    BackwardGate &gate_;
    ParamWrites &writes_;
    int64_t module_ = 0;
    std::optional<Step> step_;  // set while a backward is in the gate
};

}  // namespace yoke
