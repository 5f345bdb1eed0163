#include "core/autograd/node.h"

#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/base/thread_state.h"
#include "core/memory/relief.h"

#include <memory>
#include <utility>

namespace yoke {

namespace {

std::atomic<uint64_t> next_sequence{1};

LeafNode &leaf_of(const yoke_tensor &x, const char *call)
{
    Node *node = node_of(x);
    if (!node)
        fail(YOKE_E_STATE, "%s: the tensor %s does not require grad; call requires_grad_() first",
             call, describe(x).c_str());
    if (!node->is_leaf())
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s was made by %s; only leaves hold a gradient, so call retain_grad() before backward, or use grad() for this tensor",
            call, describe(x).c_str(), node->name());
    return *static_cast<LeafNode *>(node);
}

bool solely_owned(const Tensor &x)
{
    return x->use_count() == 1 && x->storage->use_count() == 1 &&
           x->nbytes() == x->storage->bytes && byte_range(*x).bytes == x->nbytes();
}

}  // namespace

uint64_t next_sequence_number() noexcept
{
    return next_sequence.load(std::memory_order_relaxed);
}

Node::Node() noexcept : sequence(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

NodeNotes &Node::make_notes()
{
    if (NodeNotes *known = notes()) return *known;
    auto made = std::make_unique<NodeNotes>();
    NodeNotes *known = nullptr;
    if (!notes_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
        return *known;
    return *made.release();
}

void Node::destroy() noexcept
{
    // The first node to die on this thread frees all nodes that die as a consequence, in a loop. Notes wait in a list
    // of their own, since their end runs code of the program.
    thread_local Node *waiting __attribute__((tls_model("initial-exec"))) = nullptr;
    thread_local NodeNotes *waiting_notes __attribute__((tls_model("initial-exec"))) = nullptr;
    thread_local bool freeing __attribute__((tls_model("initial-exec"))) = false;
    if (NodeNotes *mine = notes()) [[unlikely]]
        mine->next_dead_ = std::exchange(waiting_notes, mine);
    next_dead_ = waiting;
    waiting = this;
    if (freeing) return;
    freeing = true;
    while (waiting || waiting_notes) {
        if (Node *node = waiting) {
            waiting = node->next_dead_;
            node->free_node();
        } else {
            NodeNotes *const ended = waiting_notes;
            waiting_notes = ended->next_dead_;
            delete ended;
        }
    }
    freeing = false;
}

Tensor add_gradients(Tensor a, const yoke_tensor &b, bool in_place)
{
    NoGrad no_grad;
    if (!in_place && !solely_owned(a)) return tape_ops.add(*a, b);
    tape_ops.add_(*a, b);
    return a;
}

Tensor own_gradient(Tensor gradient)
{
    NoGrad no_grad;
    return solely_owned(gradient) ? gradient : tape_ops.clone(*gradient);
}

void LeafNode::backward(std::span<Tensor> gradients, std::span<Tensor>)
{
    add(std::move(gradients[0]));
}

void LeafNode::add(Tensor gradient)
{
    if (!gradient.present()) return;
    // Without the lock: if memory runs out, the allocator calls functions of the host program, which may read the
    // gradient.
    if (!grad().present()) gradient = own_gradient(std::move(gradient));
    std::lock_guard lock(mutex_);
    if (!grad_.present()) {
        grad_ = std::move(gradient);
        return;
    }
    const NoRelief no_relief;
    grad_ = add_gradients(grad_, *gradient, true);  // not moved: a failure must not lose it
}

void LeafNode::check_use(const Node &by) const
{
    if (by.sequence < moved_.load(std::memory_order_relaxed))
        fail(
            YOKE_E_STATE,
            "backward: %s used a parameter that has moved to another dtype or device since (to_, Module.to, half, cuda); call backward before that, or compute the loss again",
            by.name());
}

std::shared_ptr<LeafWatcher> LeafNode::watcher() const
{
    if (!is_watched_.load(std::memory_order_acquire)) return nullptr;
    std::lock_guard lock(mutex_);
    return watcher_;
}

void LeafNode::set_watcher(std::shared_ptr<LeafWatcher> watcher)
{
    std::lock_guard lock(mutex_);
    std::swap(watcher_, watcher);
    is_watched_.store(watcher_ != nullptr, std::memory_order_release);
}

Tensor LeafNode::grad() const
{
    std::lock_guard lock(mutex_);
    return grad_;
}

void LeafNode::set_grad(Tensor grad)
{
    std::lock_guard lock(mutex_);
    std::swap(grad_, grad);
}

Result result_of(const yoke_tensor &x) noexcept
{
    Result found{node_of(x), x.output_index};
    while (const Edge *to = found.node ? found.node->passes_to() : nullptr)
        found = {to->node.get(), to->index};
    return found;
}

void set_node(yoke_tensor &x, Ref<Node> node, uint32_t output_index) noexcept
{
    x.node = std::move(node);
    x.output_index = output_index;
    x.node_rewrites = x.storage->rewrites.load(std::memory_order_relaxed);
}

bool set_grad_enabled(bool enabled)
{
    return !std::exchange(thread_state().grad_disabled, !enabled);
}

void set_requires_grad(yoke_tensor &x, bool required)
{
    constexpr const char *call = "requires_grad_";
    if (!is_leaf(x)) {
        if (!required)
            fail(YOKE_E_STATE,
                 "%s: the tensor %s was made by %s from tensors that require grad; use detach()",
                 call, describe(x).c_str(), node_of(x)->name());
        return;
    }
    if (required && !is_floating(x.dtype))
        fail(YOKE_E_TYPE, "%s: a tensor of dtype %s has no gradient; cast it to a floating dtype",
             call, name(x.dtype));
    if (required == x.requires_grad()) return;
    if (required && !x.node.present()) set_node(x, Ref<LeafNode>::adopt(new LeafNode), 0);
    x.frozen =
        !required;  // the leaf node stays: its gradient, and graphs recorded before, must not lose each other
}

bool is_leaf(const yoke_tensor &x) noexcept
{
    return !x.node.present() || node_of(x)->is_leaf();
}

Tensor grad_of(const yoke_tensor &x, const char *call)
{
    if (!x.node.present()) return nullptr;
    if (retains_grad(x)) return retained_grad(x);
    return leaf_of(x, call).grad();
}

void set_grad_of(yoke_tensor &x, const yoke_tensor *grad, const char *call)
{
    if (!grad && !x.node.present()) return;
    const bool is_retained = retains_grad(x);
    if (!is_retained) leaf_of(x, call);  // raises for another result of an op
    if (grad &&
        (grad->dtype != x.dtype || grad->device != x.device || !same(grad->shape(), x.shape())))
        fail(
            grad->dtype != x.dtype ? YOKE_E_TYPE : YOKE_E_VALUE,
            "%s: the gradient is %s, but its tensor is %s; both must have the same shape, dtype and device",
            call, describe(*grad).c_str(), describe(x).c_str());
    Tensor given = grad ? alias(*grad) : Tensor();
    if (is_retained) return set_retained_grad(x, std::move(given));
    static_cast<LeafNode &>(*node_of(x)).set_grad(std::move(given));
}

void replace_data(yoke_tensor &x, const yoke_tensor &data, const yoke_tensor *grad)
{
    const bool is_other = x.dtype != data.dtype || x.device != data.device;
    take_data(x, data);
    if (!x.node.present()) return;
    auto &leaf = static_cast<LeafNode &>(*node_of(x));
    x.node_rewrites = x.storage->rewrites.load(std::memory_order_relaxed);
    if (is_other) leaf.note_moved();
    if (grad) leaf.set_grad(alias(*grad));
}

}  // namespace yoke
