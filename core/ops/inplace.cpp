// inplace.cpp: ops that write their first argument: shape rules and vjps.
#include "core/memory/memory.h"
#include "core/ops/family.h"

#include <vector>

namespace yoke
{

namespace
{

void check_broadcasts(const yoke_tensor &from, const yoke_tensor &to, const char *arg, const char *call)
{
    if (!broadcasts_to(from.shape(), to.shape()))
        fail(YOKE_E_VALUE, "%s: argument '%s' of shape %s does not broadcast to the %s that is written", call, arg,
             to_string(from.shape()).c_str(), to_string(to.shape()).c_str());
}

// x's elements on another device: through host memory unless both belong to one backend.
Tensor moved(const yoke_tensor &x, Device &to)
{
    const Tensor from = ops::contiguous(x);
    Tensor copy = make_tensor(to, x.dtype, x.shape(), "copy_");
    if (x.numel == 0)
        return copy;
    if (from->device->backend == to.backend) {
        synchronize(*from->device);
        check_backend(to.backend->copy(to.handle, copy->data, from->data, x.nbytes(), YOKE_COPY_PEER, nullptr), "copy_");
        return copy;
    }
    std::vector<char> host(x.nbytes());
    copy_to_host(from, host.data(), host.size(), "copy_");
    copy_from_host(copy, host.data(), host.size(), "copy_");
    return copy;
}

} // namespace

void infer_copy_(CopyInplaceArgs a, Plan &plan)
{
    check_broadcasts(a.src(), a.x(), "src", plan.name());
    // Cast first where that makes the transfer smaller; the kernel casts on the way otherwise.
    if (a.src().device != a.x().device)
        plan.replace(a.kSrc, moved(a.src(), *a.x().device));
}

void vjp_copy_(CopyInplaceArgs a, Backward &b)
{
    if (b.needs(a.kX))
        b.set(a.kX, ops::zeros_like(b.grad()));
    if (b.needs(a.kSrc)) {
        Tensor gradient = sum_to(ops::cast(b.grad(), a.src().dtype), a.src().shape());
        b.set(a.kSrc, gradient->device == a.src().device ? gradient : moved(gradient, *a.src().device));
    }
}

void infer_fill_(FillInplaceArgs, Plan &) {}

void vjp_fill_(FillInplaceArgs, Backward &b)
{
    b.set(FillInplaceArgs::kX, ops::zeros_like(b.grad()));
}

void infer_add_(AddInplaceArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const bool is_tensor = a.y().kind == YOKE_ARG_TENSOR;
    const yoke_dtype result =
        is_tensor ? promote(x.dtype, a.y().v.tensor->dtype) : promote_scalar(x.dtype, a.y().kind);
    if (is_floating(result) && !is_floating(x.dtype))
        fail(YOKE_E_TYPE, "%s: the sum has dtype %s, which does not fit into the %s that is written; use add", plan.name(),
             name(result), name(x.dtype));
    if (is_tensor)
        check_broadcasts(*a.y().v.tensor, x, "y", plan.name());
    plan.cast(a.kY, x.dtype);
    plan.scalar_dtype(x.dtype);
}

void vjp_add_(AddInplaceArgs a, Backward &b)
{
    b.set(a.kX, b.grad());
    if (b.needs(a.kY))
        b.set(a.kY, sum_to(b.grad(), a.y().v.tensor->shape()));
}

} // namespace yoke
