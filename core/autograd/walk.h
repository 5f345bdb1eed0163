// walk.h: a single run over the tape, for backward() and gradients().
#pragma once

#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/autograd/watching.h"

#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace yoke {

// Single run over the graph.
class Walk final : public WalkEdges {
public:
    // A walk goes to all leaves, or to the captured inputs alone.
    Walk(bool retain_graph, bool to_leaves);

    void seed(yoke_tensor &root, const yoke_tensor *gradient);
    // Makes the walk keep the gradient that arrives at an input, for captured().
    void capture(yoke_tensor &input);
    void run();
    // Notifies the watchers of the leaves that a walk to all leaves cannot begin.
    void refuse(TensorList roots) noexcept;
    Tensor captured(size_t i) { return std::move(captures_[i].gradient); }
    bool takes_f32(const Edge &edge) const override;
    Tensor leaf_gradient(const Edge &edge) const override;

private:
    struct Later {
        bool operator()(const Node *a, const Node *b) const { return a->sequence < b->sequence; }
    };
    struct Capture {
        Node *node;
        uint32_t index;
        Tensor gradient;
    };

    void contribute(Node &node, uint32_t index, Tensor gradient);
    void run_next(Node &node);
    void run_node(Node &node, std::vector<Tensor> gradients);
    void pass(Node &node, std::vector<Tensor> gradients);
    void run_backward(Node &node, std::span<Tensor> gradients, std::span<Tensor> out) const;
    void run_left_leaves();
    void run_all();
    template <class Visit>
    void each_reached(Visit visit) const;
    std::vector<const Node *> reached() const;
    void count_uses();
    void part_from(const LeafNode &leaf);
    void note_use(Node &leaf);
    void mark_needed();
    bool needed(const Node &node) const { return to_leaves_ || needed_.contains(&node); }
    // Returns whether a captured input lies behind the node.
    bool leads_on(const Node &node) const;

    const std::unique_ptr<WalkState> state_ = tape_ops.begin_walk();
    const bool retain_graph_, to_leaves_;
    const bool checks_ = thread_state().anomaly == kChecks;
    bool given_ = false;  // a root's gradient is the caller's tensor
    std::priority_queue<Node *, std::vector<Node *>, Later> queue_;
    // Gradients collected for a node. Pending holds the node too: another thread may drop the last tensor on the way
    // to the node meanwhile.
    struct Pending {
        Ref<Node> node;
        std::vector<Tensor> gradients;
    };
    std::unordered_map<Node *, Pending> pending_;
    std::vector<Capture> captures_;
    std::vector<Node *> roots_;
    std::unordered_map<const Node *, size_t>
        uses_;  // per leaf: nodes with a contribution still to come
    std::unordered_map<const Node *, size_t> cast_uses_;  // per cast from float32: all edges to it
    std::unordered_set<const Node *> needed_;
    Watching watching_;
};

}  // namespace yoke
