// class_loss.cpp: losses of classes, cross entropy and negative log likelihood: compositions, shape rules and vjps.
//
// Kernels know rows of classes [N, C] with an index each, without weights. All else is composed of such rows.
#include "core/ops/loss.h"

namespace yoke {

namespace {

yoke_dtype accumulated_dtype(yoke_dtype dtype)
{
    return dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
}

// Arguments of a call.
struct ClassLoss {
    const char *call;
    const yoke_tensor &x;
    const yoke_tensor &target;
    const yoke_tensor *weight;
    std::string_view reduction;
    int64_t ignored;
    double smoothing = 0;

    int axis() const { return x.ndim == 1 ? 0 : 1; }
    int64_t classes() const { return x.shape_[axis()]; }
    int64_t rows() const { return target.numel; }
    bool is_plain() const { return x.ndim == 2 && target.ndim == 1 && !weight; }
};

void check_weight(const ClassLoss &a)
{
    if (!a.weight) return;
    check_floating(*a.weight, a.call, "weight");
    if (a.weight->ndim != 1 || a.weight->shape_[0] != a.classes())
        fail(
            YOKE_E_VALUE,
            "%s: argument 'weight' has shape %s; for 'x' of shape %s it must be [%lld], a weight for each class",
            a.call, to_string(a.weight->shape()).c_str(), to_string(a.x.shape()).c_str(),
            static_cast<long long>(a.classes()));
}

// Returns the shape of the indices for x: x's without the axis of classes.
Dims shape_of_indices(const ClassLoss &a)
{
    Dims shape;
    for (int axis = 0; axis < a.x.ndim; ++axis)
        if (axis != a.axis()) shape.push_back(a.x.shape_[axis]);
    return shape;
}

void check_x(const ClassLoss &a)
{
    check_floating(a.x, a.call, "x");
    if (a.x.ndim == 0)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape []; it must be [N, C, ...], or [C]", a.call);
    if (a.classes() == 0 && (a.x.ndim == 1 || a.x.shape_[0] > 0))
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must have at least 1 class", a.call,
             to_string(a.x.shape()).c_str());
}

void check_indices(const ClassLoss &a)
{
    if (is_floating(a.target.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'target' is %s of shape %s; it must hold class indices, so write cast(target, int64) for classes in float",
            a.call, name(a.target.dtype), to_string(a.target.shape()).c_str());
    check_index(a.target, a.call, "target");
    const Dims wanted = shape_of_indices(a);
    if (!same(a.target.shape(), wanted))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'x' has shape %s and 'target' %s; they must be [N, C] and [N]: with x's classes along axis %d, 'target' has shape %s",
            a.call, to_string(a.x.shape()).c_str(), to_string(a.target.shape()).c_str(), a.axis(),
            to_string(wanted).c_str());
}

void check_probabilities(const ClassLoss &a)
{
    if (!same(a.x.shape(), a.target.shape()))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'target' is %s of shape %s; class indices are int64, so write cast(target, int64) for classes in float; probabilities have the shape of 'x', %s",
            a.call, name(a.target.dtype), to_string(a.target.shape()).c_str(),
            to_string(a.x.shape()).c_str());
    if (a.ignored >= 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'ignore_index' is %lld, but 'target' holds probabilities; leave it out, or give class indices",
            a.call, static_cast<long long>(a.ignored));
}

// Returns x as rows of classes, [rows, C]: a view where x's strides allow it.
Tensor rows_of(const ClassLoss &a)
{
    if (a.x.ndim == 2) return Tensor::share(const_cast<yoke_tensor *>(&a.x));
    if (a.x.ndim == 1) return ops::unsqueeze(a.x, 0);
    return ops::reshape(ops::transpose(ops::flatten(a.x, 2, -1), 1, 2),
                        Dims{a.rows(), a.classes()});
}

Tensor reduced(const Tensor &losses, std::string_view reduction, double rows)
{
    if (reduction == "none") return losses;
    const Tensor sum = ops::sum(losses);
    return reduction == "sum" ? sum : ops::div(sum, rows);
}

// Weights of the rows' classes, and the rows that do not count.
struct RowWeights {
    Tensor each, ignored;

    RowWeights(const ClassLoss &a, const Tensor &target, yoke_dtype dtype)
    {
        ignored = ops::eq(target, a.ignored);
        const Tensor classes = ops::masked_fill(target, ignored, int64_t{0});
        const Tensor known = ops::index_select(ops::cast(*a.weight, dtype), 0, classes);
        each = ops::masked_fill(known, ignored, int64_t{0});
    }
};

// Reduces weighted losses of rows; the mean is over the weights.
Tensor weighted(const ClassLoss &a, const Tensor &losses, const Tensor &weights)
{
    if (a.reduction == "none") return ops::reshape(ops::cast(losses, a.x.dtype), a.target.shape());
    Tensor sum = ops::sum(losses);
    if (a.reduction == "mean") sum = ops::div(sum, ops::sum(weights));
    return ops::cast(sum, a.x.dtype);
}

// Returns the losses of rows of log-probabilities, smoothed: the share of the classes' mean is weighted by classes,
// the share of the target by the target's weight.
Tensor smoothed(const ClassLoss &a, const Tensor &rows, const Tensor &target, const RowWeights &w)
{
    const yoke_dtype dtype = w.each->dtype;
    const Tensor logs = ops::log_softmax(rows, 1, dtype);
    const Tensor of_target =
        ops::mul(ops::nll_loss_internal(logs, target, "none", a.ignored), w.each);
    const int64_t last = 1;
    const Tensor of_all =
        ops::masked_fill(ops::sum(ops::mul(logs, ops::cast(*a.weight, dtype)), IntList(&last, 1)),
                         w.ignored, int64_t{0});
    return ops::sub(ops::mul(of_target, 1 - a.smoothing),
                    ops::mul(of_all, a.smoothing / static_cast<double>(a.classes())));
}

Tensor weighted_entropy(const ClassLoss &a)
{
    const Tensor rows = rows_of(a), target = ops::reshape(a.target, Dims{a.rows()});
    const RowWeights weights(a, target, accumulated_dtype(a.x.dtype));
    if (a.smoothing > 0) return weighted(a, smoothed(a, rows, target, weights), weights.each);
    const Tensor losses = ops::cross_entropy_internal(rows, target, "none", a.ignored, 0.0);
    return weighted(a, ops::mul(losses, weights.each), weights.each);
}

// Returns the cross entropy of class probabilities. The mean is over rows.
Tensor entropy_of_probabilities(const ClassLoss &a)
{
    const int axis = a.axis();
    const auto classes = static_cast<double>(a.classes());
    Tensor share = Tensor::share(const_cast<yoke_tensor *>(&a.target));
    if (a.smoothing > 0) share = ops::add(ops::mul(share, 1 - a.smoothing), a.smoothing / classes);
    if (a.weight) {
        Dims shape(a.x.ndim, 1);
        shape[axis] = a.classes();
        share = ops::mul(share, ops::reshape(ops::cast(*a.weight, a.x.dtype), shape));
    }
    const Tensor parts = ops::mul(ops::log_softmax(a.x, axis), share);
    const int64_t along = axis;
    if (a.reduction == "none") return ops::neg(ops::sum(parts, IntList(&along, 1)));
    return ops::neg(reduced(parts, a.reduction, static_cast<double>(a.x.numel) / classes));
}

// Returns the losses of all rows, or their sum or mean, without weights. `of_rows(rows, target)` calls the kernel.
template <class OfRows>
Tensor unweighted(const ClassLoss &a, OfRows of_rows)
{
    const Tensor loss = of_rows(rows_of(a), ops::reshape(a.target, Dims{a.rows()}));
    return a.reduction == "none" ? ops::reshape(loss, a.target.shape()) : loss;
}

}  // namespace

Tensor compose_cross_entropy(CrossEntropyArgs a)
{
    const ClassLoss loss{"cross_entropy",    a.x(),         a.target(),
                         a.weight(),         a.reduction(), a.ignore_index(),
                         a.label_smoothing()};
    check_reduction(loss.reduction, loss.call);
    if (!(loss.smoothing >= 0 && loss.smoothing <= 1))
        fail(YOKE_E_VALUE, "%s: argument 'label_smoothing' is %g; it must be between 0 and 1",
             loss.call, loss.smoothing);
    check_x(loss);
    check_weight(loss);
    if (is_floating(loss.target.dtype)) {
        check_probabilities(loss);
        return entropy_of_probabilities(loss);
    }
    check_indices(loss);
    if (loss.weight) return weighted_entropy(loss);
    const auto of_rows = [&](const yoke_tensor &x, const yoke_tensor &target) {
        return ops::cross_entropy_internal(x, target, loss.reduction.data(), loss.ignored,
                                           loss.smoothing);
    };
    return loss.is_plain() ? of_rows(loss.x, loss.target) : unweighted(loss, of_rows);
}

void infer_cross_entropy_internal(CrossEntropyInternalArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const yoke_dtype accumulated = accumulated_dtype(x.dtype);
    plan.result(a.reduction() == "none" ? Dims{x.shape_[0]} : Dims{}, x.dtype);
    // Results beside the loss: per row the maximum and the logarithm of the sum relative to the maximum; the number
    // of counted rows.
    plan.result(Dims{x.shape_[0], 2}, accumulated);
    plan.result({}, accumulated);
}

void vjp_cross_entropy_internal(CrossEntropyInternalArgs a, Backward &b)
{
    b.set(a.kX,
          ops::cross_entropy_backward(b.grad(), a.x(), a.target(), b.out(1), b.out(2),
                                      a.reduction().data(), a.ignore_index(), a.label_smoothing()));
}

Tensor compose_nll_loss(NllLossArgs a)
{
    const ClassLoss loss{"nll_loss", a.x(),         a.target(),
                         a.weight(), a.reduction(), a.ignore_index()};
    check_reduction(loss.reduction, loss.call);
    check_x(loss);
    check_weight(loss);
    check_indices(loss);
    const auto of_rows = [&](const char *reduction) {
        return [&, reduction](const yoke_tensor &x, const yoke_tensor &target) {
            return ops::nll_loss_internal(x, target, reduction, loss.ignored);
        };
    };
    if (!loss.weight) {
        const auto reduce = of_rows(loss.reduction.data());
        return loss.is_plain() ? reduce(loss.x, loss.target) : unweighted(loss, reduce);
    }
    const Tensor target = ops::reshape(loss.target, Dims{loss.rows()});
    const Tensor losses = of_rows("none")(rows_of(loss), target);
    const RowWeights weights(loss, target, accumulated_dtype(loss.x.dtype));
    return weighted(loss, ops::mul(losses, weights.each), weights.each);
}

void infer_nll_loss_internal(NllLossInternalArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    plan.result(a.reduction() == "none" ? Dims{x.shape_[0]} : Dims{}, x.dtype);
    plan.result({}, accumulated_dtype(x.dtype));  // how many rows count
}

void vjp_nll_loss_internal(NllLossInternalArgs a, Backward &b)
{
    b.set(a.kX, ops::nll_loss_backward(b.grad(), a.x(), a.target(), b.out(1), a.reduction().data(),
                                       a.ignore_index()));
}

}  // namespace yoke
