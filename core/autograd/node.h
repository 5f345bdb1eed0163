// node.h: the tape. A recorded op is a node; its edges lead to the nodes that made its inputs.
//
// The graph points backwards only: a tensor holds the node that made it, a node holds its edges and what its vjp reads,
// never a tensor that holds the node. Dropping the last tensor of a long chain frees it without recursion. What an op
// is, this layer does not know: nodes of ops are made by core/ops, nodes of combinators by whoever combines.
#pragma once

#include "core/base/thread_state.h"
#include "core/tensor/tensor.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace yoke {

class Node;

// Where the gradient of one input goes: result `index` of `node`. No node: the input wants no gradient.
struct Edge {
    Ref<Node> node;
    uint32_t index = 0;
};

class Node : public RefCounted {
public:
    // Made later means a greater number, so a node's number exceeds those of all nodes behind its edges.
    const uint64_t sequence;

    virtual const char *name() const noexcept = 0;  // of the op, for messages
    virtual int output_count() const noexcept { return 1; }
    virtual bool is_leaf() const noexcept { return false; }
    virtual std::span<const Edge> edges() const noexcept { return {}; }
    // The edge that the gradient of its one result goes to as it is: what made the tensor lies behind there. Null in
    // ops.
    virtual const Edge *passes_to() const noexcept { return nullptr; }

    // Gradients of the results in, gradients of the edges out. A null gradient means zero. `out` has edges().size()
    // empty entries. Raises YOKE_E_STATE if the node was freed or a saved tensor has changed.
    virtual void backward(std::span<Tensor> gradients, std::span<Tensor> out) = 0;
    // Forgets what backward reads.
    virtual void release_saved() noexcept {}

protected:
    Node() noexcept;
    void destroy() noexcept override;  // keeps a list instead of recursing
    virtual void free_node() noexcept { delete this; }

private:
    Node *next_dead_ = nullptr;
};

// What the next node's number will be, or less than it.
uint64_t next_sequence_number() noexcept;

class LeafNode;

// Takes the gradients of some leaves in place of these, in each walk to all leaves, in the thread that walks. What it
// raises ends the walk.
class LeafWatcher {
public:
    virtual ~LeafWatcher() = default;
    // Of several in one walk those with the greater order come first, whatever the graph is.
    virtual uint64_t order() const noexcept { return 0; }
    // The leaves of its own that the walk leads to, each once, before anything of the walk has run, and the number of
    // the oldest op that uses one of them.
    virtual void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) = 0;
    // When all have begun, who are listed in their order.
    virtual void open(std::span<LeafWatcher *const>) {}
    // All that comes to the leaf in this walk, when the last of it has; once for each leaf that is reached. Null where
    // missing gradients have cut it off, which shows at the walk's end.
    virtual void arrive(LeafNode &leaf, Tensor gradient) = 0;
    // All have; the walk returns when this does.
    virtual void end() = 0;
    // In place of end, where anything has raised since its begin returned; that is being handled still. If end itself
    // raises, the walk calls neither: another thread's walk may have begun by then.
    virtual void fail() noexcept = 0;
    // In place of begin, where a walk that leads to leaves of its own was refused; that is being handled still.
    virtual void refuse() noexcept {}
};

// Collects the gradient of a leaf tensor.
class LeafNode final : public Node {
public:
    const char *name() const noexcept override { return "leaf"; }
    bool is_leaf() const noexcept override { return true; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override;

    Tensor grad() const;
    void set_grad(Tensor grad);
    // To what it has; a null gradient is none.
    void add(Tensor gradient);
    // The tensor has another dtype or device from here on: no gradient of what was recorded before fits it.
    void note_moved() noexcept { moved_.store(next_sequence_number(), std::memory_order_relaxed); }
    // Raises YOKE_E_STATE for an op that has used the tensor as it was.
    void check_use(const Node &by) const;
    // Null where it keeps its gradient itself.
    std::shared_ptr<LeafWatcher> watcher() const;
    void set_watcher(std::shared_ptr<LeafWatcher> watcher);

private:
    mutable std::mutex mutex_;  // two threads may run backward over shared parameters
    Tensor grad_;
    std::shared_ptr<LeafWatcher> watcher_;
    std::atomic<bool> is_watched_{false};
    std::atomic<uint64_t> moved_{0};  // ops with smaller numbers have used it as it was
};

inline Node *node_of(const yoke_tensor &x) noexcept
{
    return static_cast<Node *>(x.node.get());
}

// The result that x is, behind nodes that only pass its gradient on; no node where nothing is recorded.
struct Result {
    Node *node = nullptr;
    uint32_t index = 0;
};
Result result_of(const yoke_tensor &x) noexcept;

// Makes `node` the maker of x.
void set_node(yoke_tensor &x, Ref<Node> node, uint32_t output_index) noexcept;

// ---- Grad mode of the calling thread -----------------------------------------------------------------

inline bool grad_enabled() noexcept
{
    const ThreadState *state = known_thread_state();
    return !state || !state->grad_disabled;
}
bool set_grad_enabled(bool enabled);  // returns what it was

class NoGrad {
public:
    NoGrad() : before_(set_grad_enabled(false)) {}
    ~NoGrad() { set_grad_enabled(before_); }
    NoGrad(const NoGrad &) = delete;
    NoGrad &operator=(const NoGrad &) = delete;

private:
    bool before_;
};

// No autocast region (core/ops/autocast.h) is in force in its scope: gradients are computed in the dtypes of what was
// recorded.
class NoAutocast {
public:
    NoAutocast() : before_(std::exchange(thread_state().autocast, nullptr)) {}
    ~NoAutocast() { thread_state().autocast = before_; }
    NoAutocast(const NoAutocast &) = delete;
    NoAutocast &operator=(const NoAutocast &) = delete;

private:
    Autocast *const before_;
};

// ---- Leaves ------------------------------------------------------------------------------------------

void set_requires_grad(yoke_tensor &x, bool required);
bool is_leaf(const yoke_tensor &x) noexcept;
// Null if there is none yet. Raises YOKE_E_STATE for a tensor that is not a leaf.
Tensor grad_of(const yoke_tensor &x, const char *call);
void set_grad_of(yoke_tensor &x, const yoke_tensor *grad, const char *call);
// From here on the leaf x has the memory, dtype, device and strides of `data`, which has its shape. Its gradient
// becomes `grad`, if that is there. Ops that were recorded before keep the memory that they used; one that would give a
// gradient of another dtype or device is refused in backward. Nobody else uses x meanwhile.
void replace_data(yoke_tensor &x, const yoke_tensor &data, const yoke_tensor *grad);

}  // namespace yoke
