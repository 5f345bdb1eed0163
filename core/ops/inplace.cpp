// inplace.cpp: ops writing their first argument: shape rules and vjps.
#include "core/ops/family.h"
#include "core/ops/move.h"
#include "core/ops/scalar.h"

namespace yoke {

namespace {

void check_broadcasts(const yoke_tensor &from, const yoke_tensor &to, const char *arg,
                      const char *call)
{
    if (!broadcasts_to(from.shape(), to.shape()))
        fail(YOKE_E_VALUE,
             "%s: argument '%s' has shape %s; it must broadcast to shape %s of the written tensor",
             call, arg, to_string(from.shape()).c_str(), to_string(to.shape()).c_str());
}

}  // namespace

void infer_copy_(CopyInplaceArgs a, Plan &plan)
{
    check_broadcasts(a.src(), a.x(), "src", plan.name());
    if (a.src().device != a.x().device)
        plan.replace(a.kSrc, move_to(a.src(), *a.x().device, false));
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
