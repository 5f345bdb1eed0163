#include "core/ops/move.h"

#include "core/autograd/node.h"
#include "core/memory/pinned.h"
#include "core/ops/graph.h"
#include "core/ops/ops.h"

namespace yoke {

namespace {

// Node that carries the gradient of a moved tensor back to the source.
class MoveNode final : public Node {
public:
    explicit MoveNode(const yoke_tensor &x)
        : edge_{Ref<Node>::share(node_of(x)), x.output_index}, from_(*x.device)
    {
    }
    const char *name() const noexcept override { return "copy_"; }
    std::span<const Edge> edges() const noexcept override { return {&edge_, 1}; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        out[0] = move_to(*gradients[0], from_, false);
    }

private:
    const Edge edge_;
    Device &from_;
};

}  // namespace

Tensor move_to(const yoke_tensor &x, Device &to, bool non_blocking)
{
    const Tensor from = ops::contiguous(x);
    const bool pinned = non_blocking && to.host && !x.device->host && x.device->backend->host_alloc;
    Tensor copy = pinned ? make_pinned(*x.device, x.dtype, x.shape(), "copy_")
                         : make_tensor(to, x.dtype, x.shape(), "copy_");
    transfer(*copy, *from, non_blocking);
    if (grad_enabled() && from->requires_grad())
        set_node(*copy, Ref<Node>::adopt(new MoveNode(*from)), 0);
    return copy;
}

Tensor convert_to(const yoke_tensor &x, Device &to, yoke_dtype dtype, bool non_blocking)
{
    // If the call does not wait for a tensor leaving a device, the tensor gets its new dtype before the copy.
    const bool unwaited = non_blocking && to.host && !x.device->host;
    const Tensor own = Tensor::share(const_cast<yoke_tensor *>(&x));
    const Tensor from = unwaited && x.dtype != dtype ? ops::cast(x, dtype) : own;
    Tensor moved = &to == x.device ? from : move_to(*from, to, non_blocking);
    return moved->dtype == dtype ? moved : ops::cast(*moved, dtype);
}

void move_leaf(yoke_tensor &x, Device &to, yoke_dtype dtype, const char *call)
{
    if (!is_leaf(x))
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s was made by %s, and only leaves can move in place; write x = x.to(...)",
            call, describe(x).c_str(), node_of(x)->name());
    if (x.node.present() && !is_floating(dtype))
        fail(
            YOKE_E_TYPE,
            "%s: a tensor of dtype %s has no gradient, but %s collects a gradient; give a floating dtype",
            call, name(dtype), describe(x).c_str());
    if (&to == x.device && dtype == x.dtype) return;
    const NoGrad no_grad;
    const NoAutocast no_autocast;
    const Uncaptured at_once;  // a leaf's memory must not belong to a graph
    const Tensor held = grad_of(x, call);
    // Both first: where memory runs out x is as it was.
    const Tensor moved = convert_to(x, to, dtype, false);
    const Tensor grad = held.present() ? convert_to(*held, to, dtype, false) : nullptr;
    const auto left = x.storage;
    replace_data(x, *moved, grad.get());
    Graph::note_left(left.get());
}

Tensor pin_memory(const yoke_tensor &x, const char *call)
{
    if (!x.device->host)
        fail(YOKE_E_VALUE,
             "%s: the tensor %s is not in host memory, so it cannot be pinned; use cpu() first",
             call, describe(x).c_str());
    if (pinned_block_of(x)) return Tensor::share(const_cast<yoke_tensor *>(&x));
    Tensor pinned = make_pinned(pinning_device(), x.dtype, x.shape(), call);
    ops::copy_(*pinned, x);
    return pinned;
}

}  // namespace yoke
