#include "core/ops/move.h"

#include "core/autograd/node.h"
#include "core/memory/pinned.h"
#include "core/ops/ops.h"

namespace yoke {

namespace {

// Carries the gradient of what was moved back to where it came from.
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

Tensor pin_memory(const yoke_tensor &x, const char *call)
{
    if (!x.device->host)
        fail(
            YOKE_E_VALUE,
            "%s: the tensor %s is not in host memory, and only that can be pinned; use cpu() first",
            call, describe(x).c_str());
    if (pinned_block_of(x)) return Tensor::share(const_cast<yoke_tensor *>(&x));
    Tensor pinned = make_pinned(pinning_device(), x.dtype, x.shape(), call);
    ops::copy_(*pinned, x);
    return pinned;
}

}  // namespace yoke
