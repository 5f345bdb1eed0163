// node.h: the tape. A recorded op is a node; its edges lead to the nodes of its inputs.
//
// References in the graph point only towards the inputs. A tensor holds its node. A node holds its edges and the data
// read by its vjp, but never a tensor holding the node. Dropping the last tensor of a long chain frees the chain
// without recursion. This layer does not know the ops: core/ops makes the nodes of ops, and the user of a combinator
// makes the combinator's nodes.
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
class NodeNotes;  // core/autograd/notes.h

// Target of an input's gradient: result `index` of `node`. Without a node, the input needs no gradient.
struct Edge {
    Ref<Node> node;
    uint32_t index = 0;
};

class Node : public RefCounted {
public:
    // Number growing with each new node, so a node's number exceeds those of all nodes behind the edges.
    const uint64_t sequence;

    virtual const char *name() const noexcept = 0;  // name of the op, for messages
    virtual int output_count() const noexcept { return 1; }
    virtual bool is_leaf() const noexcept { return false; }
    virtual std::span<const Edge> edges() const noexcept { return {}; }
    // Returns the edge that receives the gradient of the node's only result unchanged. The node that made the tensor
    // lies behind this edge. Returns null for ops.
    virtual const Edge *passes_to() const noexcept { return nullptr; }

    // Returns the edge of a cast from float32 to a half; null for every other node. Such a node takes the gradient of
    // its result in float32 too, and hands it on unchanged.
    virtual const Edge *casts_f32() const noexcept { return nullptr; }

    // Returns the name of the argument behind an edge, for messages; "" if there is none.
    virtual const char *edge_name(size_t) const noexcept { return ""; }

    // Computes the gradients of the edges from the gradients of the node's results. A null gradient means zero. `out`
    // has edges().size() empty entries. Raises YOKE_E_STATE if the node was freed or a saved tensor has changed.
    virtual void backward(std::span<Tensor> gradients, std::span<Tensor> out) = 0;
    // Releases the data that backward reads.
    virtual void release_saved() noexcept {}

    // Returns the hooks on the node's results and its other notes; null if there are none.
    NodeNotes *notes() const noexcept { return notes_.load(std::memory_order_acquire); }
    // Returns the notes, made at the first call.
    NodeNotes &make_notes();

protected:
    Node() noexcept;
    void destroy() noexcept override;  // keeps a list instead of recursing
    virtual void free_node() noexcept { delete this; }

private:
    union {
        std::atomic<NodeNotes *> notes_ = nullptr;
        Node *next_dead_;  // after the node's death
    };
};

// Returns a lower bound for the number of the next node.
uint64_t next_sequence_number() noexcept;

class LeafNode;

// Receiver of the gradients of some leaves, in place of the leaves. The walking thread calls it in each walk to all
// leaves. An error raised by the watcher ends the walk.
class LeafWatcher {
public:
    virtual ~LeafWatcher() = default;
    // Returns the rank among several watchers of a walk: a greater order comes first, whatever the graph is.
    virtual uint64_t order() const noexcept { return 0; }
    // Begins a walk, before any node of the walk has run. `reached` holds each leaf of this watcher on the walk once.
    // `oldest` is the number of the oldest op that uses such a leaf.
    virtual void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) = 0;
    // Runs after begin() of all watchers; the list holds the watchers in their order.
    virtual void open(std::span<LeafWatcher *const>) {}
    // Takes the whole gradient of a leaf in this walk, as soon as it is complete; called once for each reached leaf.
    // The gradient is null if missing gradients have cut off the leaf; in this case the call comes at the walk's end.
    virtual void arrive(LeafNode &leaf, Tensor gradient) = 0;
    // Ends a walk, after arrive() of every reached leaf. The walk returns to its caller afterwards.
    virtual void end() = 0;
    // Replaces end() if an error was raised after begin() returned; the error is still being handled. If end() itself
    // raises, the walk calls neither: another thread's walk may have begun by then.
    virtual void fail() noexcept = 0;
    // Replaces begin() if a walk to leaves of this watcher was refused, or failed before this watcher's begin(). The
    // error is still being handled.
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
    // Adds a gradient to the gradient of the leaf; the first gradient becomes the leaf's own. A null gradient adds
    // nothing.
    void add(Tensor gradient);
    // Notes that the tensor has another dtype or device from here on: gradients of earlier recordings no longer fit.
    void note_moved() noexcept { moved_.store(next_sequence_number(), std::memory_order_relaxed); }
    // Raises YOKE_E_STATE if the op used the tensor before note_moved().
    void check_use(const Node &by) const;
    // Returns the receiver of the leaf's gradients; null if the leaf keeps its own gradient.
    std::shared_ptr<LeafWatcher> watcher() const;
    void set_watcher(std::shared_ptr<LeafWatcher> watcher);

private:
    mutable std::mutex mutex_;  // two threads may run backward over shared parameters
    Tensor grad_;
    std::shared_ptr<LeafWatcher> watcher_;
    std::atomic<bool> is_watched_{false};
    std::atomic<uint64_t> moved_{0};  // ops with smaller numbers used the tensor before its move
};

inline Node *node_of(const yoke_tensor &x) noexcept
{
    return static_cast<Node *>(x.node.get());
}

// Result of a node that made x, behind nodes that only pass gradients on; the node is null if no op was recorded.
struct Result {
    Node *node = nullptr;
    uint32_t index = 0;
};
Result result_of(const yoke_tensor &x) noexcept;

// Notes that x is result `output_index` of `node`.
void set_node(yoke_tensor &x, Ref<Node> node, uint32_t output_index) noexcept;

// ---- Grad mode of the calling thread -----------------------------------------------------------------

inline bool grad_enabled() noexcept
{
    const ThreadState *state = known_thread_state();
    return !state || !state->grad_disabled;
}
bool set_grad_enabled(bool enabled);  // returns the previous mode

class NoGrad {
public:
    NoGrad() : before_(set_grad_enabled(false)) {}
    ~NoGrad() { set_grad_enabled(before_); }
    NoGrad(const NoGrad &) = delete;
    NoGrad &operator=(const NoGrad &) = delete;

private:
    bool before_;
};

// Scope without an autocast region (core/ops/autocast.h): gradients are computed in the dtypes of the recording.
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
// Returns the gradient of a leaf, or of a result that retains its gradient; null if there is no gradient yet. Raises
// YOKE_E_STATE for any other tensor.
Tensor grad_of(const yoke_tensor &x, const char *call);
void set_grad_of(yoke_tensor &x, const yoke_tensor *grad, const char *call);
// Gives the leaf x the memory, dtype, device and strides of `data`, which has the same shape. If `grad` is present,
// it becomes the gradient. Ops recorded before keep the memory that they used. Backward refuses such an op if its
// gradient would have another dtype or device. The caller makes sure that no other thread uses x meanwhile.
void replace_data(yoke_tensor &x, const yoke_tensor &data, const yoke_tensor *grad);

}  // namespace yoke
