// loss.cpp: losses of two tensors: shape rules, vjps and compositions.
#include "core/ops/loss.h"

#include "core/base/log.h"

#include <atomic>

namespace yoke {

namespace {

bool is_reduction(std::string_view text)
{
    return text == "mean" || text == "sum" || text == "none";
}

}  // namespace

void check_reduction(std::string_view text, const char *call, bool takes_batchmean)
{
    if (is_reduction(text) || (takes_batchmean && text == "batchmean")) return;
    fail(YOKE_E_VALUE,
         "%s: argument 'reduction' is \"%s\"; it must be \"mean\", %s\"sum\" or \"none\"", call,
         std::string(text).c_str(), takes_batchmean ? "\"batchmean\", " : "");
}

namespace {

// Warns, once for each loss, that its tensors differ in shape: [N] beside [N, 1] gives [N, N] losses, and trains
// nothing.
void warn_of_shapes(const char *call, const yoke_tensor &x, const yoke_tensor &target)
{
    static std::atomic<const char *> said[8];
    for (std::atomic<const char *> &each : said) {
        const char *known = nullptr;
        if (each.compare_exchange_strong(known, call)) break;
        if (known == call) return;
    }
    log(LogLevel::kWarn,
        "%s: argument 'x' has shape %s and 'target' %s, and both are broadcast to %s; give both the same shape by reshape or squeeze, or by expand if the broadcast is meant",
        call, to_string(x.shape()).c_str(), to_string(target.shape()).c_str(),
        to_string(broadcast(x.shape(), target.shape(), call)).c_str());
}

// Parts of a loss of two tensors.
struct PairLoss {
    const char *call;
    const yoke_tensor &x;
    const yoke_tensor &target;
    std::string_view reduction;
    const char *kind;
    double beta = 1.0;

    void check(bool of_one_shape) const
    {
        const yoke_dtype dtype = promote(x.dtype, target.dtype);
        if (!is_floating(dtype))
            fail(YOKE_E_TYPE,
                 "%s: argument 'x' is %s and 'target' %s; one of them must have a floating dtype",
                 call, name(x.dtype), name(target.dtype));
        if (of_one_shape && !same(x.shape(), target.shape()))
            fail(YOKE_E_VALUE,
                 "%s: argument 'x' has shape %s and 'target' %s; they must be the same", call,
                 to_string(x.shape()).c_str(), to_string(target.shape()).c_str());
        if (of_one_shape || same(x.shape(), target.shape())) return;
        broadcast(x.shape(), target.shape(), call);  // raises in the loss's name
        warn_of_shapes(call, x, target);
    }

    // Returns the divisor of the sum: the length of x's first axis for "batchmean", the number of elements for
    // "mean", else 1.
    double divisor() const
    {
        if (reduction == "batchmean") return static_cast<double>(x.shape_[0]);
        if (reduction != "mean") return 1.0;
        return static_cast<double>(checked_numel(broadcast(x.shape(), target.shape(), call), call));
    }

    Tensor value() const
    {
        return ops::pair_loss(x, target, kind, beta, reduction != "none", divisor());
    }
    Tensor elements() const { return ops::pair_loss(x, target, kind, beta, false, 1.0); }
};

// Returns a loss that depends only on the two tensors and the reduction. Raises if an argument does not fit.
Tensor plain(const PairLoss &loss)
{
    check_reduction(loss.reduction, loss.call);
    loss.check(false);
    return loss.value();
}

Tensor reduced(const Tensor &losses, std::string_view reduction)
{
    if (reduction == "none") return losses;
    return reduction == "mean" ? ops::mean(losses) : ops::sum(losses);
}

// Returns losses times their weights; an infinite loss of weight 0 has no effect.
Tensor weighted(const yoke_tensor &losses, const yoke_tensor &weight)
{
    return ops::pair_loss(losses, weight, "weighted", 1.0, false, 1.0);
}

// Returns (1 - target) * softplus(x) + pos_weight * target * softplus(-x). A part with factor 0 is never infinite.
Tensor weighted_classes(const yoke_tensor &x, const yoke_tensor &target,
                        const yoke_tensor &pos_weight)
{
    const Tensor share = ops::cast(target, promote(x.dtype, target.dtype));
    const Tensor negative = ops::sub(int64_t{1}, share),
                 missed = ops::pair_loss(ops::neg(x), share, "softplus", 1.0, false, 1.0);
    return ops::add(ops::pair_loss(x, negative, "softplus", 1.0, false, 1.0),
                    weighted(missed, pos_weight));
}

void check_weight(const yoke_tensor *weight, const char *arg, const yoke_tensor &x,
                  const char *call)
{
    if (!weight) return;
    check_floating(*weight, call, arg);
    if (!broadcasts_to(weight->shape(), x.shape()))
        fail(YOKE_E_VALUE,
             "%s: argument '%s' has shape %s; it must broadcast to the shape of 'x', %s", call, arg,
             to_string(weight->shape()).c_str(), to_string(x.shape()).c_str());
}

}  // namespace

void infer_pair_loss(PairLossArgs a, Plan &plan)
{
    const yoke_dtype dtype = promote(a.x().dtype, a.target().dtype);
    plan.cast(a.kX, dtype);
    plan.cast(a.kTarget, dtype);
    const bool alike = same(a.x().shape(), a.target().shape());
    const Dims shape = alike ? Dims{} : broadcast(a.x().shape(), a.target().shape(), plan.name());
    if (a.reduce()) return plan.result({}, dtype);
    if (alike) return plan.result_like(a.x(), dtype);
    plan.result(shape, dtype);
}

void vjp_pair_loss(PairLossArgs a, Backward &b)
{
    const auto gradient = [&](bool of_target, const yoke_tensor &of) {
        return sum_to(ops::pair_loss_backward(b.grad(), a.x(), a.target(), a.kind().data(),
                                              a.beta(), a.divisor(), of_target),
                      of.shape());
    };
    if (b.needs(a.kX)) b.set(a.kX, gradient(false, a.x()));
    if (b.needs(a.kTarget)) b.set(a.kTarget, gradient(true, a.target()));
}

void infer_pair_loss_backward(PairLossBackwardArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    if (same(x.shape(), a.target().shape())) return plan.result_like(x, x.dtype);
    plan.result(broadcast(x.shape(), a.target().shape(), plan.name()), x.dtype);
}

Tensor compose_mse_loss(MseLossArgs a)
{
    return plain({"mse_loss", a.x(), a.target(), a.reduction(), "mse"});
}

Tensor compose_l1_loss(L1LossArgs a)
{
    return plain({"l1_loss", a.x(), a.target(), a.reduction(), "l1"});
}

Tensor compose_smooth_l1_loss(SmoothL1LossArgs a)
{
    const PairLoss loss{"smooth_l1_loss", a.x(), a.target(), a.reduction(), "smooth_l1", a.beta()};
    check_reduction(loss.reduction, loss.call);
    if (!(a.beta() >= 0))
        fail(YOKE_E_VALUE,
             "smooth_l1_loss: argument 'beta' is %g; it must be 0 (as in l1_loss) or more",
             a.beta());
    loss.check(false);
    return loss.value();
}

Tensor compose_binary_cross_entropy_with_logits(BinaryCrossEntropyWithLogitsArgs a)
{
    const PairLoss loss{"binary_cross_entropy_with_logits", a.x(), a.target(), a.reduction(),
                        "bce_logits"};
    check_reduction(loss.reduction, loss.call);
    loss.check(true);
    check_weight(a.weight(), "weight", a.x(), loss.call);
    check_weight(a.pos_weight(), "pos_weight", a.x(), loss.call);
    if (!a.weight() && !a.pos_weight()) return loss.value();
    Tensor losses =
        a.pos_weight() ? weighted_classes(a.x(), a.target(), *a.pos_weight()) : loss.elements();
    if (a.weight()) losses = weighted(losses, *a.weight());
    return reduced(losses, loss.reduction);
}

Tensor compose_binary_cross_entropy(BinaryCrossEntropyArgs a)
{
    const PairLoss loss{"binary_cross_entropy", a.x(), a.target(), a.reduction(), "bce"};
    check_reduction(loss.reduction, loss.call);
    loss.check(true);
    check_weight(a.weight(), "weight", a.x(), loss.call);
    if (!a.weight()) return loss.value();
    return reduced(ops::mul(loss.elements(), *a.weight()), loss.reduction);
}

Tensor compose_kl_div(KlDivArgs a)
{
    const PairLoss loss{"kl_div", a.x(), a.target(), a.reduction(),
                        a.log_target() ? "kl_log" : "kl"};
    check_reduction(loss.reduction, loss.call, true);
    loss.check(false);
    if (loss.reduction == "batchmean" && a.x().ndim == 0)
        fail(
            YOKE_E_VALUE,
            "kl_div: argument 'x' has no axes, but reduction \"batchmean\" divides by the length of the first axis; use \"sum\"");
    return loss.value();
}

}  // namespace yoke
