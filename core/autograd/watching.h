// watching.h: who takes gradients of leaves in one walk, and the leaves whose gradient is yet to come to them.
#pragma once

#include "core/autograd/node.h"

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

namespace yoke {

class Watching {
public:
    // A leaf that the walk leads to, and a use of it.
    void meet(LeafNode &leaf);
    void note_use(Node &leaf, const Node &by);
    // Whoever takes the gradient of the leaf, once; null where it keeps it itself.
    LeafWatcher *take(Node &leaf);

    void begin();
    // What is yet to come does not.
    void finish();
    // Within a handler: those that wait for an end are told that there is none, those that wait for a beginning too.
    void fail() noexcept;

private:
    struct One {
        std::shared_ptr<LeafWatcher> watcher;
        std::vector<Ref<LeafNode>> reached = {};
        uint64_t oldest = UINT64_MAX;  // op that uses one of them
        enum { kAhead, kOpen, kOver } at = kAhead;
    };
    std::list<One> all_;
    std::unordered_map<Node *, One *> awaited_;  // leaves, with who takes them
};

}  // namespace yoke
