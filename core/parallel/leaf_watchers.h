// leaf_watchers.h: the watchers on the leaves of a module, and the owner of these watchers.
//
// There are four watchers. On the leaf of a parameter stands
// * `Reducing`, while a reducer lives whose group has several ranks: from the wrapping of the module to its end.
// * `Alone`, while a reducer lives whose group has a single rank: leaves keep their gradients themselves, and
//   backward passes are counted. If a module is wrapped several times, an `Alone` takes the leaf from a `LetGo` or
//   another `Alone`, and brings them back at its end. A `Reducing` takes the leaf from each of these, and brings no
//   watcher back.
// * `LetGo`, after the owner has released a reducer of several ranks, until the module is wrapped anew. A later
//   backward of ops recorded before raises YOKE_E_STATE. A `LetGo` keeps no part of the reducer.
// * no watcher, before the module is wrapped, while it is regrouped, and after the release of a reducer without a
//   living group.
// A reducer's anchor is a leaf without a parameter. Outputs of the module lead there (tied_outputs.h). On the anchor
// stands `Reducing`, or `LetGoOutput` while a `LetGo` is on the leaves of the parameters.
#pragma once

#include "core/autograd/node.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace yoke {

class Reducer;

// Gives a reducer the gradients of its leaves.
class Reducing final : public LeafWatcher {
public:
    explicit Reducing(Reducer &of) : of_(of) {}
    Reducer &of() const noexcept { return of_; }
    uint64_t order() const noexcept override;
    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override;
    void open(std::span<LeafWatcher *const> all) override;
    void arrive(LeafNode &leaf, Tensor gradient) override;
    void end() override;
    void fail() noexcept override;
    void refuse() noexcept override;

private:
    Reducer &of_;
};

// Counts the backward passes in a group of a single rank. If the rank joins another group later, this group then
// knows how far the rank is. In a forked child does not count: the group is missing there, and its locks may be held
// for good.
class Alone final : public LeafWatcher {
public:
    explicit Alone(Reducer &of) : of_(of) {}
    Reducer &of() const noexcept { return of_; }
    uint64_t order() const noexcept override;
    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override;
    void arrive(LeafNode &leaf, Tensor gradient) override;
    void end() override;
    void fail() noexcept override;

private:
    Reducer &of_;
};

// Leaves of a reducer: takes them for the reducer, and gives them back. A leaf has a lock of its own. The thread that
// wraps, regroups or releases the module calls the functions in sequence. Only has_left is for any thread.
class WatchedLeaves {
public:
    explicit WatchedLeaves(Reducer &of) : of_(of), reducing_(of), alone_(of) {}
    WatchedLeaves(const WatchedLeaves &) = delete;
    WatchedLeaves &operator=(const WatchedLeaves &) = delete;

    // Raises YOKE_E_STATE if another live reducer reduces a parameter of the module. Does nothing in a group of a
    // single rank.
    void check_free(const char *call) const;
    // Puts the reducer's watcher on the leaves, and in a group of several ranks on the anchor.
    void take();
    // Takes over the former reducer's anchor, to which earlier recorded outputs lead.
    void keep_anchor_of(const WatchedLeaves &former) { anchor_ = former.anchor_; }
    // Takes the reducer's watcher off the leaves, and gives leaves their earlier watcher back, if any. Gradients
    // stay.
    void leave() noexcept { leave_to(nullptr); }
    // Puts a LetGo on the leaves in place of the reducer's watcher, so a later backward of ops recorded before raises
    // YOKE_E_STATE.
    void let_go() noexcept;
    const Ref<LeafNode> &anchor() const noexcept { return anchor_; }
    // Returns the LetGo that had the leaf of a parameter before this reducer, whose group has a single rank; or null.
    LeafWatcher *let_go_before(const LeafNode &leaf) const;

private:
    // Watchers on a leaf before the reducer, if its group has a single rank.
    struct Before {
        std::shared_ptr<LeafWatcher> let_go;
        std::vector<std::weak_ptr<Reducer>> alone;
    };
    bool is_reduced_elsewhere(size_t param) const;
    bool takes(size_t param);
    LeafWatcher *watcher() noexcept;
    std::shared_ptr<LeafWatcher> former(size_t param) const noexcept;
    void leave_to(const std::shared_ptr<LeafWatcher> &next) noexcept;

    Reducer &of_;
    Reducing reducing_;
    Alone alone_;
    Ref<LeafNode> anchor_ = Ref<LeafNode>::adopt(new LeafNode);
    std::vector<Before> before_;  // by parameter, in a group of a single rank
    uint64_t taken_at_ = 0;       // ops recorded from this number on are reduced
    std::atomic<bool> has_left_{false};
};

}  // namespace yoke
