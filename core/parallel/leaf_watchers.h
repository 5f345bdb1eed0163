// leaf_watchers.h: the watchers that stand on the leaves of a module, and who puts them there.
//
// Four watchers stand on leaves. On the leaf of a parameter there is
// * `Reducing`, while a reducer of a group of several ranks lives: from the wrapping of the module to its end.
// * `Alone`, while a reducer of a group of one lives: leaves keep their gradients themselves, and backwards are
//   counted. If a module is wrapped several times, an `Alone` takes the leaf from a `LetGo`, and from another `Alone`,
//   and brings them back when it leaves. A `Reducing` takes the leaf from each of these, and brings nothing back.
// * `LetGo`, after whoever held a reducer of several ranks has let the reducer go, until the module is wrapped anew.
//   A later backward of what was recorded before raises YOKE_E_STATE. A `LetGo` holds nothing of the reducer.
// * None, before the module is wrapped, while it is regrouped, and after a reducer without a living group was let go.
// A reducer's anchor is the leaf of no parameter. Outputs of the module lead there (tied_outputs.h). On the anchor
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

// Counts the backwards of a group of one, so that a group which this rank comes to later knows how far the rank is. In
// a forked child counts nothing: the group is not there, and its locks may be held for good.
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

// The leaves of one reducer: takes them for the reducer, and gives them back. A leaf has a lock of its own. Who wraps,
// regroups or lets the module go calls the functions, one after the other; has_left alone is for any thread.
class WatchedLeaves {
public:
    explicit WatchedLeaves(Reducer &of) : of_(of), reducing_(of), alone_(of) {}
    WatchedLeaves(const WatchedLeaves &) = delete;
    WatchedLeaves &operator=(const WatchedLeaves &) = delete;

    // Raises YOKE_E_STATE if another reducer that is live reduces a parameter of the module.
    void check_free(const char *call) const;
    // Puts the reducer's watcher on the leaves, and in a group of several ranks on the anchor.
    void take();
    // Takes over the former reducer's anchor, to which outputs lead that were recorded before.
    void keep_anchor_of(const WatchedLeaves &former) { anchor_ = former.anchor_; }
    // Leaves the leaves to themselves, or to what was there before. Gradients stay.
    void leave() noexcept { leave_to(nullptr); }
    // Leaves them to a LetGo.
    void let_go() noexcept;
    const Ref<LeafNode> &anchor() const noexcept { return anchor_; }
    // Returns the LetGo from which the reducer, which is alone in its group, has taken the leaf of a parameter; or
    // null.
    LeafWatcher *let_go_before(const LeafNode &leaf) const;

private:
    // Watchers that were on a leaf before a reducer that is alone in its group.
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
    std::vector<Before> before_;  // by parameter, in a group of one
    uint64_t taken_at_ = 0;       // what is recorded from this number on is reduced
    std::atomic<bool> has_left_{false};
};

}  // namespace yoke
