// inplace.cpp: ops that write their first argument: shape rules and vjps.
#include "core/memory/memory.h"
#include "core/ops/family.h"
#include "core/ops/scalar.h"

#include <vector>

namespace yoke {

namespace {

void check_broadcasts(const yoke_tensor &from, const yoke_tensor &to, const char *arg,
                      const char *call)
{
    if (!broadcasts_to(from.shape(), to.shape()))
        fail(YOKE_E_VALUE,
             "%s: argument '%s' of shape %s does not broadcast to the %s that is written", call,
             arg, to_string(from.shape()).c_str(), to_string(to.shape()).c_str());
}

Tensor moved(const yoke_tensor &x, Device &to);

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
        out[0] = moved(*gradients[0], from_);
    }

private:
    const Edge edge_;
    Device &from_;
};

// Through host memory unless both belong to one backend.
void transfer(yoke_tensor &to, const yoke_tensor &from)
{
    if (from.numel == 0) return;
    if (from.device->backend == to.device->backend) {
        synchronize(*from.device);
        check_backend(to.device->backend->copy(to.device->handle, to.data, from.data, from.nbytes(),
                                               YOKE_COPY_PEER, nullptr),
                      "copy_", to.device->name.c_str());
        synchronize(*to.device);  // `from` may be a temporary that is freed right after
        return;
    }
    std::vector<char> host(from.nbytes());
    copy_to_host(from, host.data(), host.size(), "copy_");
    copy_from_host(to, host.data(), host.size(), "copy_");
}

// x's elements on another device.
Tensor moved(const yoke_tensor &x, Device &to)
{
    const Tensor from = ops::contiguous(x);
    Tensor copy = make_tensor(to, x.dtype, x.shape(), "copy_");
    transfer(*copy, *from);
    if (grad_enabled() && from->requires_grad())
        set_node(*copy, Ref<Node>::adopt(new MoveNode(*from)), 0);
    return copy;
}

}  // namespace

void infer_copy_(CopyInplaceArgs a, Plan &plan)
{
    check_broadcasts(a.src(), a.x(), "src", plan.name());
    if (a.src().device != a.x().device) plan.replace(a.kSrc, moved(a.src(), *a.x().device));
}

void vjp_copy_(CopyInplaceArgs a, Backward &b)
{
    if (b.needs(a.kX)) b.set(a.kX, ops::zeros_like(b.grad()));
    if (b.needs(a.kSrc)) b.set(a.kSrc, sum_to(ops::cast(b.grad(), a.src().dtype), a.src().shape()));
}

void infer_fill_(FillInplaceArgs a, Plan &plan)
{
    check_scalar_fits(a.value(), a.x().dtype, plan.name(), "value");
}

void vjp_fill_(FillInplaceArgs, Backward &b)
{
    b.set(FillInplaceArgs::kX, ops::zeros_like(b.grad()));
}

}  // namespace yoke
