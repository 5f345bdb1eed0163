// reducer.h: the gradients of a module's parameters, made the mean over all ranks of a group while backward runs.
//
// A gradient is written into its bucket as soon as the last of it has come, and a bucket is reduced when it is full and
// all buckets before it have been given to the group. So the group's thread reduces while backward goes on. backward
// returns when all is reduced. Of several modules in one backward the module that was made last is reduced first.
//
// A small all_reduce opens each backward (step_header.h). The parameters to which the walk leads are known before the
// walk runs. So every rank learns in time which of them any rank has used, and how much each rank counts. Between the
// calls of a group that are a backward's no other calls of the group may be begun by this rank.
//
// Ranks with unlike numbers of batches have a join (join.h): a rank that has run out of data leaves the join, and from
// then on answers each backward of the others with weight 0, until all have left. The header tells where each rank is.
#pragma once

#include "core/base/error.h"
#include "core/parallel/backward_gate.h"
#include "core/parallel/bucket_layout.h"
#include "core/parallel/compression.h"
#include "core/parallel/leaf_watchers.h"
#include "core/parallel/param_writes.h"
#include "core/parallel/step_runner.h"
#include "core/parallel/wrapped_module.h"
#include "core/state/tree.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace yoke {

struct ReducerOptions {
    BucketSizes sizes;
    std::string compression;  // as make_compression takes it
    BucketHook hook;          // in its place
    uint32_t flags = 0;       // of the calls on 16-bit floats, as yoke_collective has it
};

// A reducer of one module in one group. Any thread calls the functions for scripts. A reducer has no lock of its own:
// the gate, the writes and the leaves have locks. Compression, layout and step belong to the thread of the backward
// that the gate has let in, and between two backwards to the thread that wraps or regroups the module.
//
// Order of locks: BackwardGate (its head says which of two comes first); ParamWrites, then a leaf. No lock of a reducer
// is held around a call of a group.
class Reducer final : public std::enable_shared_from_this<Reducer> {
public:
    // All ranks call it alike. If parameters or buffers have unlike values, all ranks take rank 0's. Raises
    // UnlikeModels if the ranks have unlike parameters, with the first that differs. Any other error ends the group,
    // since the other ranks wait.
    static std::shared_ptr<Reducer> make(const Ref<Group> &group, std::vector<ModuleTensor> params,
                                         std::vector<ModuleTensor> buffers,
                                         const ReducerOptions &options);
    // Returns the reducer of the group's one module. Raises YOKE_E_STATE if the group has none, or several.
    static std::shared_ptr<Reducer> of(Group &group, const char *call);

    // ---- For scripts

    // Leaves the leaves: from now on they keep their gradients themselves.
    void detach() noexcept { leaves_.leave(); }
    // Leaves the leaves when the script lets the module go. A later backward of what was recorded before raises
    // YOKE_E_STATE.
    void let_go() noexcept;
    // While it is off backward adds up here, and reduces the sum when it is on again.
    void set_sync(bool is_on) { gate_.set_sync(is_on); }
    bool is_sync() const { return gate_.is_sync(); }
    // Sets how much this rank's gradients count: the mean is the sum of n times gradient by the sum of weights.
    void set_weight(double n);
    // Raises what the group has failed with. After that backward leaves gradients of this rank alone, also of what is
    // recorded after any call told this rank of the failure. Returns the number of a forward that begins now: nodes of
    // the forward are no older.
    uint64_t check();
    // Ties outputs of the forward of that number (tied_outputs.h).
    std::vector<Tensor> tied(TensorList outputs, uint64_t forward) const;
    std::vector<std::vector<std::string>> bucket_names() const { return layout_.names(); }
    // Returns the compression's state. A backward that begins meanwhile waits; raises YOKE_E_STATE while one runs.
    Ref<State> comm_state() const;
    // Raises as comm_state does, and YOKE_E_VALUE for the state of another model or compression.
    void load_comm_state(const State &state);

    // ---- For watchers of leaves, joins and regroups

    uint64_t order() const noexcept { return order_; }  // ranks make shared modules in one order
    // Whether the reducer reduces: false after its group has failed.
    bool is_live() const;
    Group &group() const noexcept { return *group_; }
    const WrappedModule &module() const noexcept { return module_; }
    const BucketLayout &layout() const noexcept { return layout_; }
    BackwardGate &gate() noexcept { return gate_; }
    ParamWrites &writes() noexcept { return writes_; }
    StepRunner &steps() noexcept { return steps_; }
    WatchedLeaves &leaves() noexcept { return leaves_; }
    const WatchedLeaves &leaves() const noexcept { return leaves_; }

    // Leaves the leaves and forgets all gradients. The reducer keeps the compression's state.
    void retire();
    CompressionState compression_state() const;
    // Makes a reducer of the same module for another group. It has no leaves until take_leaves.
    std::shared_ptr<Reducer> make_next(const Ref<Group> &group) const;
    // `former` in these three: the reducer that this one takes the place of. Null: there is none.
    void compare_models(const Reducer *former) const;  // on all ranks
    void take_leaves(const Reducer *former);           // and lays the buckets out
    void enter_group(const Reducer *former);           // the group knows its reducers
    // Goes on with the compression's state, and with what a script has set for the former reducer.
    void go_on_from(const Reducer &former, CompressionState state);

private:
    Reducer(Ref<Group> group, WrappedModule module, const ReducerOptions &options);
    static std::shared_ptr<Reducer> make_checked(const Ref<Group> &group,
                                                 std::vector<ModuleTensor> params,
                                                 std::vector<ModuleTensor> buffers,
                                                 const ReducerOptions &options);

    const Ref<Group> group_;
    const WrappedModule module_;
    const ReducerOptions options_;
    const uint64_t order_;      // of all reducers in the process
    int64_t first_number_ = 0;  // of the module in its group, before the module was regrouped there
    const std::unique_ptr<Compression> compression_;
    BucketLayout layout_;
    BackwardGate gate_;
    ParamWrites writes_;  // since the last backward of the group
    StepRunner steps_;
    WatchedLeaves leaves_;
};

}  // namespace yoke

// Leaves keep their gradients themselves when its last reference goes.
struct yoke_reducer final : public yoke::RefCounted {
    explicit yoke_reducer(std::shared_ptr<yoke::Reducer> of) : core_(std::move(of)) {}
    ~yoke_reducer() override { core_->let_go(); }
    std::shared_ptr<yoke::Reducer> core() const
    {
        const std::lock_guard lock(mutex_);
        return core_;
    }
    void replace(std::shared_ptr<yoke::Reducer> by)
    {
        const std::lock_guard lock(mutex_);
        core_.swap(by);
    }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<yoke::Reducer> core_;
};
