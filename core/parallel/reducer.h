// reducer.h: gradients of a module's parameters. During backward they become the mean over all ranks of a group.
//
// When the last part of a gradient arrives, the gradient is written into its bucket. A bucket is reduced when the
// bucket is full and the group has all earlier buckets. So the group's thread reduces while backward goes on.
// backward returns after all reductions. If a backward passes several modules, the last-made module is reduced first.
//
// A small all_reduce opens each backward (step_header.h). The parameters of a walk are known before the walk runs. So
// every rank learns in time which parameters any rank has used, and the weight of each rank. Between a backward's
// calls of a group, this rank may begin no other calls of the group.
//
// Ranks with unlike numbers of batches use a join (join.h): a rank out of data leaves the join, and then answers each
// backward of the others with weight 0, until all ranks have left. The header contains the state of each rank.
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
    std::string compression;  // as for make_compression
    BucketHook hook;          // replaces `compression`
    uint32_t flags = 0;       // for calls on 16-bit floats, as in yoke_collective
};

// Reducer of a module in a group. Any thread calls the functions for scripts. The reducer has no lock of its own: the
// gate, the writes and the leaves have locks. Compression, layout and step belong to the thread of the backward in
// the gate. Between backward passes, they belong to the thread that wraps or regroups the module.
//
// Order of locks: BackwardGate (its head gives the order of its two locks); ParamWrites, then a leaf. No lock of a
// reducer is held around a call of a group.
class Reducer final : public std::enable_shared_from_this<Reducer> {
public:
    // Makes a reducer; all ranks call the function alike. If parameters or buffers have unlike values, all ranks take
    // rank 0's. Raises UnlikeModels with the first difference if the ranks have unlike parameters. Any other error
    // ends the group, since the other ranks wait.
    static std::shared_ptr<Reducer> make(const Ref<Group> &group, std::vector<ModuleTensor> params,
                                         std::vector<ModuleTensor> buffers,
                                         const ReducerOptions &options);
    // Returns the reducer of the group's only module. Raises YOKE_E_STATE if the group has no module, or several.
    static std::shared_ptr<Reducer> of(Group &group, const char *call);

    // ---- For scripts

    // Gives the leaves back: they keep their gradients themselves from now on, without a reduction.
    void detach() noexcept { leaves_.leave(); }
    // Gives the leaves back when the script releases the module. In a healthy group of several ranks, a later
    // backward of ops recorded before raises YOKE_E_STATE.
    void let_go() noexcept;
    // Switches reduction on or off. While sync is off, backward adds gradients up here. The next backward with sync
    // on reduces the sum.
    void set_sync(bool is_on) { gate_.set_sync(is_on); }
    bool is_sync() const { return gate_.is_sync(); }
    // Sets the weight of this rank's gradients: the mean is the sum of n times gradient by the sum of weights. Raises
    // YOKE_E_VALUE unless `n` is finite and above 0.
    void set_weight(double n);
    // Checks the group before a forward, and returns the number of a forward that begins now: the forward's nodes are
    // no older. Raises the group's failure, and YOKE_E_STATE after a failed regroup. After the report, a backward
    // leaves gradients of this rank alone, also for ops recorded after any call reported the failure.
    uint64_t check();
    // Ties outputs of the forward with this number to the reducer, as tied_outputs() does. Returns only nulls in a
    // group of a single rank.
    std::vector<Tensor> tied(TensorList outputs, uint64_t forward) const;
    std::vector<std::vector<std::string>> bucket_names() const { return layout_.names(); }
    // Returns the compression's state. A backward that begins meanwhile waits. Raises YOKE_E_STATE while a backward
    // runs.
    Ref<State> comm_state() const;
    // Sets the compression's state. Raises YOKE_E_STATE while a backward runs, and YOKE_E_VALUE for the state of
    // another model or compression.
    void load_comm_state(const State &state);

    // ---- For watchers of leaves, joins and regroups

    uint64_t order() const noexcept { return order_; }  // relative order is alike on all ranks
    // Returns whether the reducer reduces; false after its group has failed, or its gate is closed.
    bool is_live() const;
    Group &group() const noexcept { return *group_; }
    const WrappedModule &module() const noexcept { return module_; }
    const BucketLayout &layout() const noexcept { return layout_; }
    BackwardGate &gate() noexcept { return gate_; }
    ParamWrites &writes() noexcept { return writes_; }
    StepRunner &steps() noexcept { return steps_; }
    WatchedLeaves &leaves() noexcept { return leaves_; }
    const WatchedLeaves &leaves() const noexcept { return leaves_; }

    // Gives the leaves back and forgets all gradients, before another reducer takes over the module. The reducer
    // keeps the compression's state. Raises YOKE_E_STATE while a backward runs.
    void retire();
    CompressionState compression_state() const;
    // Makes a reducer of the same module for another group. The new reducer has no leaves until take_leaves.
    std::shared_ptr<Reducer> make_next(const Ref<Group> &group) const;
    // Raises UnlikeModels, alike on all ranks, if the ranks' modules, options or compressions differ. All ranks call
    // this function. `former`, here and in the next two functions, is the reducer replaced by this reducer, or null.
    void compare_models(const Reducer *former) const;
    void take_leaves(const Reducer *former);  // also lays out the buckets
    void enter_group(const Reducer *former);  // the group keeps a list of its reducers
    // Loads the compression's state, and takes over the script's settings of the former reducer.
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
    const uint64_t order_;      // unique in the process, ascending
    int64_t first_number_ = 0;  // number of the module before a regroup in the same group
    const std::unique_ptr<Compression> compression_;
    BucketLayout layout_;
    BackwardGate gate_;
    ParamWrites writes_;  // since the last backward of the group
    StepRunner steps_;
    WatchedLeaves leaves_;
};

}  // namespace yoke

// Handle of a reducer. When the last reference goes, leaves keep their gradients themselves.
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
