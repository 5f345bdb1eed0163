// norm.cpp: normalisations and embedding: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

constexpr int kChannelAxis = 1;

yoke_dtype statistics_dtype(yoke_dtype dtype)
{
    return dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
}

bool is_half(yoke_dtype dtype)
{
    return dtype == YOKE_F16 || dtype == YOKE_BF16;
}

// A weight, bias or statistic beside x: its shape, and x's dtype; or float32 beside a half, where the op takes that.
void check_beside(const yoke_tensor *p, const char *arg, const yoke_tensor &x, IntList shape,
                  const char *call, bool takes_f32 = false)
{
    if (!p) return;
    const bool fits =
        p->dtype == x.dtype || (takes_f32 && is_half(x.dtype) && p->dtype == YOKE_F32);
    if (!fits)
        fail(YOKE_E_TYPE, "%s: 'x' is %s, but '%s' is %s; %scast one of them first", call,
             name(x.dtype), arg, name(p->dtype),
             takes_f32 ? "it takes x's dtype, or float32 beside a half: " : "");
    if (!same(p->shape(), shape))
        fail(YOKE_E_VALUE, "%s: '%s' has shape %s; for 'x' of shape %s it must be %s", call, arg,
             to_string(p->shape()).c_str(), to_string(x.shape()).c_str(), to_string(shape).c_str());
}

// The first normalised axis.
int check_normalized_shape(const yoke_tensor &x, IntList shape, const char *call)
{
    const int axis = x.ndim - static_cast<int>(shape.size());
    if (shape.empty() || axis < 0 || !same(x.shape().subspan(static_cast<size_t>(axis)), shape))
        fail(YOKE_E_VALUE,
             "%s: 'normalized_shape' is %s, but 'x' has shape %s; give the sizes of its last axes",
             call, to_string(shape).c_str(), to_string(x.shape()).c_str());
    return axis;
}

IntList outer_shape(const yoke_tensor &x, int axis)
{
    return x.shape().first(static_cast<size_t>(axis));
}

// The gradient of a bias: the sum over all axes that it does not have.
Tensor sum_outer(const Tensor &grad, int axis)
{
    Dims axes;
    for (int i = 0; i < axis; ++i) axes.push_back(i);
    return ops::sum(grad, IntList(axes));
}

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
        fail(YOKE_E_VALUE, "%s: 'x' has shape %s; it must be [N, C, ...]", call,
             to_string(x.shape()).c_str());
}

// States a gradient, or an empty result where it is not asked for.
void plan_gradient(Plan &plan, bool wanted, const yoke_tensor &like)
{
    if (wanted) return plan.result_like(like, like.dtype);
    plan.result(Dims{0}, like.dtype);
}

void plan_gradient(Plan &plan, bool wanted, IntList shape, yoke_dtype dtype)
{
    plan.result(wanted ? Dims(shape) : Dims{0}, dtype);
}

// States the gradients of x, of a weight and of a bias that each have one element a channel.
void plan_channel_gradients(Plan &plan, bool of_x, const yoke_tensor &x, yoke_dtype dtype)
{
    const Dims channels{x.shape_[kChannelAxis]};
    plan_gradient(plan, of_x, x);
    plan.result(channels, dtype);
    plan.result(channels, dtype);
}

}  // namespace

// ---- layer_norm, rms_norm --------------------------------------------------------------------------------

void infer_layer_norm(LayerNormArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    check_floating(x, plan.name(), "x");
    const int axis = check_normalized_shape(x, a.normalized_shape(), plan.name());
    check_beside(a.weight(), "weight", x, a.normalized_shape(), plan.name());
    check_beside(a.bias(), "bias", x, a.normalized_shape(), plan.name());
    plan.result_like(x, x.dtype);
    plan.result(outer_shape(x, axis), statistics_dtype(x.dtype));  // mean
    plan.result(outer_shape(x, axis), statistics_dtype(x.dtype));  // 1 / standard deviation
}

void vjp_layer_norm(LayerNormArgs a, Backward &b)
{
    const int axis = a.x().ndim - static_cast<int>(a.normalized_shape().size());
    const bool of_x = b.needs(a.kX), of_bias = b.needs(a.kBias), of_weight = b.needs(a.kWeight);
    if (!of_x && !of_weight) return b.set(a.kBias, sum_outer(b.grad(), axis));
    auto [dx, dweight, dbias] =
        ops::layer_norm_backward(b.grad(), a.x(), of_x ? a.weight() : nullptr, b.out(1), b.out(2),
                                 axis, of_x, of_weight || of_bias);
    if (of_x) b.set(a.kX, std::move(dx));
    if (of_weight) b.set(a.kWeight, std::move(dweight));
    if (of_bias) b.set(a.kBias, std::move(dbias));
}

void infer_layer_norm_backward(LayerNormBackwardArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const IntList normalized = x.shape().subspan(static_cast<size_t>(a.axis()));
    plan_gradient(plan, a.of_x(), x);
    plan_gradient(plan, a.of_weight(), normalized, x.dtype);
    plan_gradient(plan, a.of_weight(), normalized, x.dtype);
}

void infer_rms_norm(RmsNormArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    check_floating(x, plan.name(), "x");
    const int axis = check_normalized_shape(x, a.normalized_shape(), plan.name());
    check_beside(a.weight(), "weight", x, a.normalized_shape(), plan.name());
    plan.result_like(x, x.dtype);
    plan.result(outer_shape(x, axis), statistics_dtype(x.dtype));  // 1 / root mean square
}

void vjp_rms_norm(RmsNormArgs a, Backward &b)
{
    const int axis = a.x().ndim - static_cast<int>(a.normalized_shape().size());
    const bool of_x = b.needs(a.kX), of_weight = b.needs(a.kWeight);
    auto [dx, dweight] = ops::rms_norm_backward(b.grad(), a.x(), of_x ? a.weight() : nullptr,
                                                b.out(1), axis, of_x, of_weight);
    if (of_x) b.set(a.kX, std::move(dx));
    if (of_weight) b.set(a.kWeight, std::move(dweight));
}

void infer_rms_norm_backward(RmsNormBackwardArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    plan_gradient(plan, a.of_x(), x);
    plan_gradient(plan, a.of_weight(), x.shape().subspan(static_cast<size_t>(a.axis())), x.dtype);
}

// ---- group_norm ------------------------------------------------------------------------------------------

void infer_group_norm(GroupNormArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    check_channels(x, plan.name());
    const int64_t channels = x.shape_[kChannelAxis], groups = a.num_groups();
    if (groups < 1 || channels % groups != 0)
        fail(YOKE_E_VALUE,
             "%s: 'num_groups' is %lld, which does not divide the %lld channels of 'x' of shape %s",
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

// ---- batch_norm ------------------------------------------------------------------------------------------

namespace {

// Raises unless each channel has a statistic of its own to be updated.
void check_updatable(const yoke_tensor *running, const char *arg)
{
    if (!running || running->ndim == 0 || running->shape_[0] < 2 || running->strides_[0]) return;
    fail(
        YOKE_E_VALUE,
        "batch_norm: argument '%s' is expanded: its %lld elements are in one place of memory; clone() it first",
        arg, static_cast<long long>(running->shape_[0]));
}

// running = (1 - momentum) running + momentum value, not recorded.
void update_running(const yoke_tensor *running, const Tensor &value, double momentum, double scale)
{
    if (!running) return;
    yoke_tensor &x = const_cast<yoke_tensor &>(*running);
    const NoGrad no_grad;
    ops::mul_(x, 1.0 - momentum);
    ops::add_(x, ops::mul(value, momentum * scale));
}

}  // namespace

Tensor compose_batch_norm(BatchNormArgs a)
{
    const yoke_tensor &x = a.x();
    check_channels(x, "batch_norm");
    if (!a.training()) {
        if (!a.running_mean() || !a.running_var())
            fail(YOKE_E_VALUE,
                 "batch_norm: '%s' is absent; without training it needs both running statistics",
                 a.running_mean() ? "running_var" : "running_mean");
        return std::move(ops::batch_norm_internal(x, a.running_mean(), a.running_var(), a.weight(),
                                                  a.bias(), a.eps())[0]);
    }
    const int64_t channels = x.shape_[kChannelAxis], count = channels ? x.numel / channels : 0;
    if (count == 1)
        fail(
            YOKE_E_VALUE,
            "batch_norm: 'x' of shape %s has one value a channel, and training needs more than one",
            to_string(x.shape()).c_str());
    check_beside(a.running_mean(), "running_mean", x, Dims{channels}, "batch_norm", true);
    check_beside(a.running_var(), "running_var", x, Dims{channels}, "batch_norm", true);
    check_updatable(a.running_mean(), "running_mean");
    check_updatable(a.running_var(), "running_var");
    auto [out, mean, variance] =
        ops::batch_norm_internal(x, nullptr, nullptr, a.weight(), a.bias(), a.eps());
    if (count > 1) {
        const auto n = static_cast<double>(count);
        update_running(a.running_mean(), mean, a.momentum(), 1.0);
        update_running(a.running_var(), variance, a.momentum(), n / (n - 1));
    }
    return std::move(out);
}

void infer_batch_norm_internal(BatchNormInternalArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const Dims channels{x.shape_[kChannelAxis]};
    check_beside(a.mean(), "running_mean", x, channels, "batch_norm", true);
    check_beside(a.variance(), "running_var", x, channels, "batch_norm", true);
    check_beside(a.weight(), "weight", x, channels, "batch_norm", true);
    check_beside(a.bias(), "bias", x, channels, "batch_norm", true);
    plan.result_like(x, x.dtype);
    plan.result(channels, statistics_dtype(x.dtype));
    plan.result(channels, statistics_dtype(x.dtype));
}

void vjp_batch_norm_internal(BatchNormInternalArgs a, Backward &b)
{
    const bool of_x = b.needs(a.kX), of_weight = b.needs(a.kWeight), of_bias = b.needs(a.kBias);
    if (!of_x && !of_weight)
        return b.set(a.kBias, ops::cast(sum_but_channels(b.grad()), a.bias()->dtype));
    auto [dx, dweight, dbias] =
        ops::batch_norm_backward(b.grad(), a.x(), of_x ? a.weight() : nullptr, b.out(1), b.out(2),
                                 a.eps(), a.mean() == nullptr, of_x);
    if (of_x) b.set(a.kX, std::move(dx));
    if (of_weight) b.set(a.kWeight, ops::cast(dweight, a.weight()->dtype));
    if (of_bias) b.set(a.kBias, ops::cast(dbias, a.bias()->dtype));
}

void infer_batch_norm_backward(BatchNormBackwardArgs a, Plan &plan)
{
    plan_channel_gradients(plan, a.of_x(), a.x(), statistics_dtype(a.x().dtype));
}

// ---- embedding -------------------------------------------------------------------------------------------

void infer_embedding(EmbeddingArgs a, Plan &plan)
{
    const yoke_tensor &index = a.index(), &weight = a.weight();
    check_index(index, plan.name(), "index");
    if (weight.ndim != 2)
        fail(YOKE_E_VALUE, "%s: 'weight' has shape %s; it must be [count, width]", plan.name(),
             to_string(weight.shape()).c_str());
    if (const auto padding = a.padding_idx()) {
        const int64_t count = weight.shape_[0];
        if (*padding < -count || *padding >= count)
            fail(YOKE_E_VALUE,
                 "%s: 'padding_idx' is %lld; 'weight' of shape %s has the rows %lld to %lld",
                 plan.name(), static_cast<long long>(*padding), to_string(weight.shape()).c_str(),
                 static_cast<long long>(-count), static_cast<long long>(count - 1));
        a.set_padding_idx(*padding < 0 ? *padding + count : *padding);
    }
    Dims shape{index.shape()};
    shape.push_back(weight.shape_[1]);
    plan.result(shape, weight.dtype);
}

void vjp_embedding(EmbeddingArgs a, Backward &b)
{
    b.set(a.kWeight,
          ops::embedding_backward(b.grad(), a.index(), a.weight().shape_[0], a.padding_idx()));
}

void infer_embedding_backward(EmbeddingBackwardArgs a, Plan &plan)
{
    const yoke_tensor &grad = a.grad();
    plan.result(Dims{a.count(), grad.shape_[grad.ndim - 1]}, grad.dtype);
}

}  // namespace yoke
