// optim.cpp: shape rules of ops on many tensors at once. core/optim has checked that the lists correspond.
#include "core/ops/family.h"

namespace yoke {

namespace {

// Raises YOKE_E_VALUE for an expanded gradient, whose elements a kernel would write twice. Parameters were checked
// when they were added.
void check_not_expanded(TensorList gradients, const char *call)
{
    for (const yoke_tensor *x : gradients)
        if (const int axis = expanded_axis(*x); axis >= 0)
            fail(
                YOKE_E_VALUE,
                "%s: a gradient, %s, is expanded: axis %d has %lld elements in one place of memory; clone() it first",
                call, describe(*x).c_str(), axis, static_cast<long long>(x->shape_[axis]));
}

}  // namespace

void infer_unscale(UnscaleArgs a, Plan &)
{
    check_not_expanded(a.grads(), "unscale_");
}

void infer_total_norm(TotalNormArgs, Plan &plan)
{
    plan.result({}, YOKE_F64);
}

void infer_clip_all(ClipAllArgs a, Plan &)
{
    check_not_expanded(a.tensors(), "clip_grad_norm_");
}

}  // namespace yoke
