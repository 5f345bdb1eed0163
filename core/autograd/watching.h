// watching.h: the watchers of leaves in a walk, and the leaves whose gradient is still to come.
#pragma once

#include "core/autograd/node.h"

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

namespace yoke {

class Watching {
public:
    // Notes a leaf that the walk leads to, if the leaf has a watcher.
    void meet(LeafNode &leaf);
    // Notes that the op `by` uses the leaf, so begin() knows the oldest op.
    void note_use(Node &leaf, const Node &by);
    // Returns whether a watcher takes the gradient of the leaf, which is still to come.
    bool awaits(const Node &leaf) const { return awaited_.contains(const_cast<Node *>(&leaf)); }
    // Returns the watcher that takes the gradient of the leaf. Returns null if the leaf keeps its own gradient, and
    // in every later call for the same leaf.
    LeafWatcher *take(Node &leaf);

    void begin();
    // Reports null for the gradients that did not come, then ends the watchers.
    void finish();
    // Runs within a handler. Calls fail() of the watchers that have begun, and refuse() of those that have not.
    void fail() noexcept;

private:
    struct One {
        std::shared_ptr<LeafWatcher> watcher;
        std::vector<Ref<LeafNode>> reached = {};
        uint64_t oldest = UINT64_MAX;  // number of an op using a leaf
        enum { kAhead, kOpen, kOver } at = kAhead;
    };
    std::list<One> all_;
    std::unordered_map<Node *, One *> awaited_;  // leaves, with their watchers
};

}  // namespace yoke
