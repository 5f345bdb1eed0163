// loss.cpp: losses: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

bool is_reduction(std::string_view text)
{
    return text == "mean" || text == "sum" || text == "none";
}

}  // namespace

void infer_cross_entropy(CrossEntropyArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &target = a.target();
    check_floating(x, plan.name(), "x");
    check_index(target, plan.name(), "target");
    if (x.ndim != 2 || target.ndim != 1 || x.shape_[0] != target.shape_[0])
        fail(YOKE_E_VALUE, "%s: 'x' has shape %s and 'target' %s; they must be [N, C] and [N]",
             plan.name(), to_string(x.shape()).c_str(), to_string(target.shape()).c_str());
    if (!is_reduction(a.reduction()))
        fail(YOKE_E_VALUE,
             "%s: argument 'reduction' is \"%s\"; it is \"mean\", \"sum\" or \"none\"", plan.name(),
             std::string(a.reduction()).c_str());
    if (!(a.label_smoothing() >= 0 && a.label_smoothing() <= 1))
        fail(YOKE_E_VALUE, "%s: argument 'label_smoothing' is %g; it lies between 0 and 1",
             plan.name(), a.label_smoothing());
    const yoke_dtype accumulated = x.dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
    plan.result(a.reduction() == "none" ? Dims{x.shape_[0]} : Dims{}, x.dtype);
    plan.result(target.shape(), accumulated);  // log-sum-exp of each row
    plan.result({}, accumulated);              // how many rows count
}

void vjp_cross_entropy(CrossEntropyArgs a, Backward &b)
{
    b.set(a.kX,
          ops::cross_entropy_backward(b.grad(), a.x(), a.target(), b.out(1), b.out(2),
                                      a.reduction().data(), a.ignore_index(), a.label_smoothing()));
}

void infer_cross_entropy_backward(CrossEntropyBackwardArgs a, Plan &plan)
{
    plan.result(a.x().shape(), a.x().dtype);
}

}  // namespace yoke
