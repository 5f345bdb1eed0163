// norm_channels.cpp: normalisations by channel: checks, shape rules and vjps.
#include "core/ops/norm.h"

namespace yoke {

namespace {

constexpr int kChannelAxis = 1;

Tensor sum_but_channels(const Tensor &grad)
{
    Dims axes;
    for (int i = 0; i < grad->ndim; ++i)
        if (i != kChannelAxis) axes.push_back(i);
    return ops::sum(grad, IntList(axes));
}

void check_channels(const yoke_tensor &x, const char *call)
{
    check_floating(x, call, "x");
    if (x.ndim < 2)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must be [N, C, ...]", call,
             to_string(x.shape()).c_str());
}

// Plans the gradients of x, of a weight and of a bias with an element per channel.
void plan_channel_gradients(Plan &plan, bool of_x, const yoke_tensor &x, yoke_dtype dtype)
{
    const Dims channels{x.shape_[kChannelAxis]};
    plan_gradient(plan, of_x, x);
    plan.result(channels, dtype);
    plan.result(channels, dtype);
}

}  // namespace

// ---- group_norm ------------------------------------------------------------------------------------------

void infer_group_norm(GroupNormArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    check_channels(x, plan.name());
    const int64_t channels = x.shape_[kChannelAxis], groups = a.num_groups();
    if (groups < 1 || channels % groups != 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'num_groups' is %lld; it must divide the %lld channels of 'x' of shape %s",
            plan.name(), static_cast<long long>(groups), static_cast<long long>(channels),
            to_string(x.shape()).c_str());
    check_beside(a.weight(), "weight", x, Dims{channels}, plan.name());
    check_beside(a.bias(), "bias", x, Dims{channels}, plan.name());
    plan.result_like(x, x.dtype);
    const Dims statistics{x.shape_[0], groups};
    plan.result(statistics, statistics_dtype(x.dtype));  // mean
    plan.result(statistics, statistics_dtype(x.dtype));  // 1 / standard deviation
}

void vjp_group_norm(GroupNormArgs a, Backward &b)
{
    const bool of_x = b.needs(a.kX), of_weight = b.needs(a.kWeight);
    if (!of_x && !of_weight) return b.set(a.kBias, sum_but_channels(b.grad()));
    auto [dx, dweight, dbias] = ops::group_norm_backward(
        b.grad(), a.x(), of_x ? a.weight() : nullptr, b.out(1), b.out(2), a.num_groups(), of_x);
    if (of_x) b.set(a.kX, std::move(dx));
    if (of_weight) b.set(a.kWeight, std::move(dweight));
    if (b.needs(a.kBias)) b.set(a.kBias, std::move(dbias));
}

void infer_group_norm_backward(GroupNormBackwardArgs a, Plan &plan)
{
    plan_channel_gradients(plan, a.of_x(), a.x(), a.x().dtype);
}

// ---- batch_norm, batch_norm_add_relu ------------------------------------------------------------------------

namespace {

// Raises unless each channel has a statistic of its own to be updated.
void check_updatable(const yoke_tensor *running, const char *arg, const char *call)
{
    if (!running || running->ndim == 0 || running->shape_[0] < 2 || running->strides_[0]) return;
    fail(
        YOKE_E_VALUE,
        "%s: argument '%s' is expanded: its %lld elements are in one place of memory; clone() it first",
        call, arg, static_cast<long long>(running->shape_[0]));
}

void check_running(const yoke_tensor *running, const char *arg, const yoke_tensor &x,
                   const char *call)
{
    check_beside(running, arg, x, Dims{x.shape_[kChannelAxis]}, call, true);
    check_updatable(running, arg, call);
}

// Returns the number of values of a channel. Raises YOKE_E_VALUE for a single value: training needs more.
int64_t checked_count(const yoke_tensor &x, const char *call)
{
    const int64_t channels = x.shape_[kChannelAxis], count = channels ? x.numel / channels : 0;
    if (count == 1)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'x' of shape %s has one value for each channel, but training needs at least two",
            call, to_string(x.shape()).c_str());
    return count;
}

// Sets running, if present, to (1 - momentum) running + momentum scale value; not recorded.
void update_running(const yoke_tensor *running, const Tensor &value, double momentum, double scale)
{
    if (!running) return;
    yoke_tensor &x = const_cast<yoke_tensor &>(*running);
    const NoGrad no_grad;
    ops::mul_(x, 1.0 - momentum);
    ops::add_(x, ops::mul(value, momentum * scale));
}

// Returns the normalised batch. normalize(mean, variance) makes the result, mean and variance; null arguments stand
// for the batch's own. Training also updates the running statistics; without training, the result uses them.
template <class BatchArgs, class Normalize>
Tensor normalize_batch(const char *call, BatchArgs a, const Normalize &normalize)
{
    const yoke_tensor &x = a.x();
    check_channels(x, call);
    if (!a.training()) {
        if (!a.running_mean() || !a.running_var())
            fail(YOKE_E_VALUE,
                 "%s: argument '%s' is missing; without training, give both running statistics",
                 call, a.running_mean() ? "running_var" : "running_mean");
        return std::move(normalize(a.running_mean(), a.running_var())[0]);
    }
    const int64_t count = checked_count(x, call);
    check_running(a.running_mean(), "running_mean", x, call);
    check_running(a.running_var(), "running_var", x, call);
    auto [out, mean, variance] = normalize(nullptr, nullptr);
    if (count > 1) {
        const auto n = static_cast<double>(count);
        update_running(a.running_mean(), mean, a.momentum(), 1.0);
        update_running(a.running_var(), variance, a.momentum(), n / (n - 1));
    }
    return std::move(out);
}

template <class BatchArgs>
void plan_batch(BatchArgs a, const char *call, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const Dims channels{x.shape_[kChannelAxis]};
    check_beside(a.mean(), "running_mean", x, channels, call, true);
    check_beside(a.variance(), "running_var", x, channels, call, true);
    check_beside(a.weight(), "weight", x, channels, call, true);
    check_beside(a.bias(), "bias", x, channels, call, true);
    plan.result_like(x, x.dtype);
    plan.result(channels, statistics_dtype(x.dtype));
    plan.result(channels, statistics_dtype(x.dtype));
    plan.result(channels, statistics_dtype(x.dtype));  // 1 / standard deviation
}

// Sets the gradients of weight and bias, cast from the dtype of statistics in which a kernel gives them.
template <class BatchArgs>
void set_affine(BatchArgs a, Backward &b, const Tensor &dweight, const Tensor &dbias)
{
    if (b.needs(a.kWeight)) b.set(a.kWeight, ops::cast(dweight, a.weight()->dtype));
    if (b.needs(a.kBias)) b.set(a.kBias, ops::cast(dbias, a.bias()->dtype));
}

}  // namespace

Tensor compose_batch_norm(BatchNormArgs a)
{
    return normalize_batch(
        "batch_norm", a, [&](const yoke_tensor *mean, const yoke_tensor *variance) {
            return ops::batch_norm_internal(a.x(), mean, variance, a.weight(), a.bias(), a.eps());
        });
}

void infer_batch_norm_internal(BatchNormInternalArgs a, Plan &plan)
{
    plan_batch(a, "batch_norm", plan);
}

// Sets the gradients of a norm's inputs from its result's gradient.
template <class BatchArgs>
static void set_batch(BatchArgs a, Backward &b, const Tensor &grad)
{
    const bool of_x = b.needs(a.kX);
    if (!of_x && !b.needs(a.kWeight)) {
        if (b.needs(a.kBias)) b.set(a.kBias, ops::cast(sum_but_channels(grad), a.bias()->dtype));
        return;
    }
    auto [dx, dweight, dbias] = ops::batch_norm_backward(
        grad, a.x(), of_x ? a.weight() : nullptr, b.out(1), b.out(3), a.mean() == nullptr, of_x);
    if (of_x) b.set(a.kX, std::move(dx));
    set_affine(a, b, dweight, dbias);
}

void vjp_batch_norm_internal(BatchNormInternalArgs a, Backward &b)
{
    set_batch(a, b, b.grad());
}

void infer_batch_norm_backward(BatchNormBackwardArgs a, Plan &plan)
{
    plan_channel_gradients(plan, a.of_x(), a.x(), statistics_dtype(a.x().dtype));
}

Tensor compose_batch_norm_add_relu(BatchNormAddReluArgs a)
{
    return normalize_batch(
        "batch_norm_add_relu", a, [&](const yoke_tensor *mean, const yoke_tensor *variance) {
            return ops::batch_norm_add_relu_internal(a.x(), a.residual(), mean, variance,
                                                     a.weight(), a.bias(), a.eps());
        });
}

void infer_batch_norm_add_relu_internal(BatchNormAddReluInternalArgs a, Plan &plan)
{
    check_beside(a.residual(), "residual", a.x(), a.x().shape(), "batch_norm_add_relu");
    plan_batch(a, "batch_norm_add_relu", plan);
}

// Returns whether both tensors have the same order of elements in memory.
static bool lies_as(const yoke_tensor &x, const yoke_tensor &like)
{
    for (int axis = 0; axis < x.ndim; ++axis)
        if (x.shape_[axis] > 1 && x.strides_[axis] != like.strides_[axis]) return false;
    return true;
}

// Sets the gradients in a single pass, which sums in the memory order of the gradient. If x, gradient and result have
// different orders, two passes give the same bits as the ops replaced by this op.
void vjp_batch_norm_add_relu_internal(BatchNormAddReluInternalArgs a, Backward &b)
{
    const bool of_x = b.needs(a.kX), of_residual = b.needs(a.kResidual);
    if ((!of_x && !b.needs(a.kWeight)) || !lies_as(b.grad(), b.out()) || !lies_as(a.x(), b.out())) {
        Tensor masked = ops::relu_backward(b.grad(), b.out());
        set_batch(a, b, masked);
        if (of_residual) b.set(a.kResidual, std::move(masked));
        return;
    }
    auto [dx, dweight, dbias, dresidual] = ops::batch_norm_add_relu_backward(
        b.grad(), a.x(), b.out(), of_x ? a.weight() : nullptr, b.out(1), b.out(3),
        a.mean() == nullptr, of_x, of_residual);
    if (of_x) b.set(a.kX, std::move(dx));
    if (of_residual) b.set(a.kResidual, std::move(dresidual));
    set_affine(a, b, dweight, dbias);
}

void infer_batch_norm_add_relu_backward(BatchNormAddReluBackwardArgs a, Plan &plan)
{
    plan_channel_gradients(plan, a.of_x(), a.x(), statistics_dtype(a.x().dtype));
    plan_gradient(plan, a.of_residual(), a.x());
}

}  // namespace yoke
