// reducer.h: the gradients of a model's parameters, made the mean over all ranks of a group while backward runs.
//
// A gradient is written into its bucket as soon as the last of it has come, and a bucket is reduced when it is full and
// all before it have been given to the group: so the ranks make their calls in one order whatever their graphs are, and
// the group's thread reduces while backward goes on. backward returns when all is reduced. Of several modules in one
// backward that which was made last is reduced first.
//
// One small all_reduce opens each backward. Which parameters the walk leads to is known before it runs; so every rank
// learns in time which of them any rank has used, and how much each of them counts. Between the calls of a group that
// are a backward's no other calls of the group may be begun by this rank.
//
// Ranks with unlike numbers of batches have a join: who has run out of data leaves it, and from then on answers each
// backward of the others with weight 0, until all have left it. The small all_reduce tells who is where.
#pragma once

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/parallel/compression.h"
#include "core/parallel/param_writes.h"
#include "core/state/tree.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace yoke {

struct ReducerOptions {
    BucketSizes sizes;
    std::string compression;  // as make_compression has it
    BucketHook hook;          // in its place
};

class UnlikeModels final : public Error {  // raised on all ranks alike
public:
    using Error::Error;
};

class Reducer final : public LeafWatcher, public std::enable_shared_from_this<Reducer> {
public:
    struct Named {
        std::string name;
        Tensor tensor;
        bool is_frozen = false;  // a parameter that required no gradient when it was given
    };

    // All ranks call it alike. Parameters are leaves; what is said of gradients is of those that require one. Where
    // values of parameters or buffers differ, all take rank 0's. Raises YOKE_E_VALUE where the ranks have unlike
    // parameters, with the first that differs. What else it raises while the others wait ends the group.
    static std::shared_ptr<Reducer> make(const Ref<Group> &group, std::vector<Named> params,
                                         std::vector<Named> buffers, const ReducerOptions &options);
    // In its place, of what cannot be made on this rank: the others, who compare their models with this one's, raise
    // it.
    static void tell_refused(Group &group, const Error &why);
    ~Reducer() override;

    // Leaves keep their gradients themselves from now on.
    void detach() noexcept;
    // The same where whoever holds it lets it go: a later backward of what was recorded before is YOKE_E_STATE, as its
    // gradients would be this rank's alone without a word.
    void let_go() noexcept;
    // While it is off backward adds up here, and reduces the sum when it is on again.
    void set_sync(bool is_on);
    bool is_sync() const;
    // How much this rank's gradients count: the mean is the sum of n times gradient by the sum of weights.
    void set_weight(double n);
    // Raises what the group has failed with; backward then leaves gradients of this rank alone, as it does of what was
    // recorded after any call had told this rank of the failure. Gives the number of a forward that begins now: nodes
    // that it makes are no older.
    uint64_t check();
    // What the module's forward of that number gave, so that a backward which leads there takes part even where it
    // leads to none of the parameters. Those that require a gradient are tied, or all floats where none does: what the
    // forward made itself, of others what is given, to go on with in their place; else that is null.
    std::vector<Tensor> tied(TensorList outputs, uint64_t forward) const;
    std::vector<std::vector<std::string>> bucket_names() const;

    // The one whose gradients the group reduces. Raises YOKE_E_STATE where it has none, or several.
    static std::shared_ptr<Reducer> of(Group &group, const char *call);
    // All ranks are in a join, or none is, or each backward raises YOKE_E_STATE on all of them.
    void begin_join();
    // Returns when all ranks have come here, with the values and gradients of one that came last, and what that one
    // gave as `mine`, which may be null. Raises YOKE_E_STATE where none of them had a backward since.
    Ref<State> end_join(const Ref<State> &mine);
    static Ref<State> end_join_of(Group &group, const Ref<State> &mine);

    // In the place of this one, which leaves its leaves: the same for another group, whose ranks all call it. All get
    // parameters, buffers and the compression's state from the rank that is furthest, and what that one gave as `mine`.
    // Gradients are gone, also where it raises, and parameters and buffers are as they were then.
    struct Regrouped {
        std::shared_ptr<Reducer> reducer;
        Ref<State> state;
    };
    Regrouped regroup(const Ref<Group> &group, const Ref<State> &mine);
    // Of the compression. A backward that begins meanwhile waits; raises YOKE_E_STATE while one runs, YOKE_E_VALUE for
    // that of another model or compression.
    Ref<State> comm_state() const;
    void load_comm_state(const State &state);

    uint64_t order() const noexcept override { return order_; }
    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override;
    void open(std::span<LeafWatcher *const> all) override;
    void arrive(LeafNode &leaf, Tensor gradient) override;
    void end() override;
    void fail() noexcept override;
    void refuse() noexcept override;

private:
    struct Place {
        size_t bucket = 0, view = 0;
    };
    // Where a rank is: what it tells of itself in the small all_reduce.
    enum class Presence : int64_t { kPlain, kJoined, kOut };
    // One backward.
    struct Step {
        bool is_synced = false, is_alone = false;
        double weight = 1;
        Presence presence = Presence::kPlain;
        std::vector<bool> is_reached;  // by parameter
        std::vector<size_t> unreached;
        std::vector<size_t> order;    // of those that have arrived
        std::vector<size_t> missing;  // by bucket: parameters that have yet to arrive
        size_t begun = 0;             // buckets that have been given to the group
        Tensor shared;                // the small all_reduce, and its work
        Ref<Work> sharing;
        std::vector<double> sums;  // what it came to
        double heaviest = 0;       // of the ranks' weights
        bool is_even = false;      // all weights are equal
        int32_t root = -1;         // the first rank that is not out; -1: all are
        // Modules of this group in the same backward, whose calls come before and behind this one's.
        Reducer *before = nullptr, *after = nullptr;
        const char *call() const { return presence == Presence::kOut ? "join" : "backward"; }
    };

    // In its place on the leaves of one that is alone in its group: leaves keep their gradients themselves, and each
    // backward counts, so that a group which this rank comes to later knows how far it is.
    class Alone final : public LeafWatcher {
    public:
        explicit Alone(Reducer &of) : of_(of) {}
        Reducer &of() const noexcept { return of_; }
        uint64_t order() const noexcept override { return of_.order_; }
        void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override;
        void arrive(LeafNode &leaf, Tensor gradient) override;
        void end() override;
        void fail() noexcept override;

    private:
        Reducer &of_;
    };
    // What was on a leaf before one that is alone in its group: where a reducer was let go, and others that are alone.
    struct Before {
        std::shared_ptr<LeafWatcher> let_go;
        std::vector<std::weak_ptr<Reducer>> alone;
    };

    using Leaves = std::vector<Ref<LeafNode>>;
    Reducer(Ref<Group> group, std::vector<Named> all_params, std::vector<Named> buffers,
            const ReducerOptions &options, const Leaves *of_former);
    static std::shared_ptr<Reducer> checked(const Ref<Group> &group, std::vector<Named> params,
                                            std::vector<Named> buffers,
                                            const ReducerOptions &options);
    bool is_live();
    void check_unwatched(const char *call) const;
    void check_unwatched_on_all() const;
    bool reducing(size_t param) const;
    LeafWatcher *watcher();
    bool takes(size_t param);
    std::shared_ptr<LeafWatcher> former(size_t param) const noexcept;
    void install();
    void leave_leaves(const std::shared_ptr<LeafWatcher> &next) noexcept;
    // With those of the others; `former` is what this one takes the place of, if it does.
    void compare_models(const Reducer *former) const;
    void tell_difference(const std::string &mine, int64_t length_of_first) const;
    void take_values_of_rank_0();
    void lay_out(const BucketPlan &plan);
    Bucket move_into_bucket(const std::vector<size_t> &which);

    void claim(uint64_t oldest);
    void release(Backwards::End how) noexcept;
    Backwards::End end_of_step() const noexcept;
    void check_params() const;
    void check_places() const;
    void open_step(const std::vector<Ref<LeafNode>> &reached);
    void find_neighbours(std::span<LeafWatcher *const> all);
    double where() const;
    void share();
    const std::vector<double> &shared();
    double factor(double weight);
    double room_above(const Bucket &bucket);
    void store_unreached();
    void take_room(std::vector<double> &shared) const;
    void take_weights(std::vector<double> &shared);
    void take_numbers(std::vector<double> &shared) const;
    void check_presences(const std::vector<double> &shared) const;
    // What a rank that is out does for a backward of the others; false where all are out.
    void leave();
    Ref<State> state_of_last(const Ref<State> &mine);
    bool answer();
    bool answer_step();
    void open_answer();
    void take_values(int32_t root);
    void take_gradients(int32_t root);
    using Position = Backwards::Position;
    static int32_t furthest(Group &group, uint64_t former, Position mine);
    Position position() const;
    void look_at_all_parameters() noexcept;
    void look_at_parameters() noexcept;
    void retire();
    void warn_of_losses(const Group &group, int32_t from) const;
    Regrouped go_on_from(const Reducer &former, const Ref<State> &told);
    std::vector<std::string> names() const;
    Ref<State> values(const Ref<State> &mine) const;
    void take_over(const Reducer &before, State &values);
    std::vector<Tensor> tensors() const;
    const Tensor &view_of(size_t param) const;
    bool holds_view(const LeafNode &leaf, const Tensor &view) const;
    void part_gradients();
    void store(LeafNode &leaf, size_t param, Tensor gradient);
    void complete(size_t param);
    void launch_full();
    bool has_begun_all() const;
    void finish_step();
    void settle(size_t bucket);
    static void tell_raised(Group &group, const char *call) noexcept;
    void rebuild();
    enum class Writes { kAll, kUnlike };
    void send(const std::vector<Named> &tensors, int32_t root, Writes writes);
    void send_together(const std::vector<Tensor> &some, int32_t root, Writes writes);
    void check_resting(const char *call) const;
    LeafNode &leaf_of(size_t param) const { return *leaves_[param]; }

    const Ref<Group> group_;
    const std::vector<Named> all_params_, params_, buffers_;  // params_: those that are not frozen
    const ReducerOptions options_;
    const uint64_t order_;  // of all in the process; ranks make those that they share in one order
    int64_t number_ = 0;    // among those of the group
    int64_t first_number_ = 0;  // the same before it was regrouped there
    const Leaves leaves_;  // by parameter, as they were given: an op may have written one since
    std::unordered_map<const LeafNode *, size_t> numbers_;
    Ref<LeafNode> anchor_ = Ref<LeafNode>::adopt(new LeafNode);  // of outputs, no parameter
    const std::unique_ptr<Compression> compression_;
    std::vector<Bucket> buckets_;
    std::vector<Place> places_;  // by parameter
    uint64_t installed_at_ = 0;  // what is recorded from this number on is reduced
    bool is_rebuilt_ = false;
    Alone alone_{*this};
    std::vector<Before> before_;  // by parameter, where it is alone
    std::atomic<bool> has_left_{false};
    bool is_over_ = false;     // the group has failed, and somebody was told
    bool is_retired_ = false;  // another one was to take its place
    Step step_;

    // Of what the compression goes on with, by whoever it is not of: taken before mutex_, and to begin a backward.
    mutable std::mutex state_mutex_;
    mutable std::mutex mutex_;
    bool is_walking_ = false, is_sync_ = true;
    bool has_unsynced_ = false;  // gradients that were added up since the last sum
    double weight_ = 1;
    Presence presence_ = Presence::kPlain;
    int32_t joined_root_ = -1;  // of the last backward within the join
    ParamWrites writes_;        // since the last backward of the group
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
