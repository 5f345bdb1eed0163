// norm.cpp: normalisations over the last axes, and embedding: shape rules and vjps.
#include "core/ops/norm.h"

namespace yoke {

namespace {

}  // namespace

// ---- common to all normalisations ----------------------------------------------------------------------

yoke_dtype statistics_dtype(yoke_dtype dtype)
{
    return dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
}

void check_beside(const yoke_tensor *p, const char *arg, const yoke_tensor &x, IntList shape,
                  const char *call, bool takes_f32)
{
    if (!p) return;
    const bool fits =
        p->dtype == x.dtype || (takes_f32 && is_half(x.dtype) && p->dtype == YOKE_F32);
    if (!fits)
        fail(
            YOKE_E_TYPE,
            "%s: argument 'x' is %s, but '%s' is %s; both must have the same dtype: %scast one of them first",
            call, name(x.dtype), arg, name(p->dtype),
            takes_f32 ? "with a half 'x', float32 is allowed too: " : "");
    if (!same(p->shape(), shape))
        fail(YOKE_E_VALUE, "%s: argument '%s' has shape %s; for 'x' of shape %s it must be %s",
             call, arg, to_string(p->shape()).c_str(), to_string(x.shape()).c_str(),
             to_string(shape).c_str());
}

void plan_gradient(Plan &plan, bool wanted, const yoke_tensor &like)
{
    if (wanted) return plan.result_like(like, like.dtype);
    plan.result(Dims{0}, like.dtype);
}

void plan_gradient(Plan &plan, bool wanted, IntList shape, yoke_dtype dtype)
{
    plan.result(wanted ? Dims(shape) : Dims{0}, dtype);
}

namespace {

// Returns the first normalised axis. Raises YOKE_E_VALUE unless `shape` has the sizes of x's last axes.
int check_normalized_shape(const yoke_tensor &x, IntList shape, const char *call)
{
    const int axis = x.ndim - static_cast<int>(shape.size());
    if (shape.empty() || axis < 0 || !same(x.shape().subspan(static_cast<size_t>(axis)), shape))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'normalized_shape' is %s, but 'x' has shape %s; give the sizes of its last axes",
            call, to_string(shape).c_str(), to_string(x.shape()).c_str());
    return axis;
}

IntList outer_shape(const yoke_tensor &x, int axis)
{
    return x.shape().first(static_cast<size_t>(axis));
}

// Returns the gradient of a bias: `grad`, summed over the axes before `axis`, which are missing in the bias.
Tensor sum_outer(const Tensor &grad, int axis)
{
    Dims axes;
    for (int i = 0; i < axis; ++i) axes.push_back(i);
    return ops::sum(grad, IntList(axes));
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

// ---- add_layer_norm --------------------------------------------------------------------------------------

namespace {

// Returns the dtype of the sum: the common dtype, or float32 if the dtypes differ. Raises YOKE_E_TYPE for float64
// beside another dtype, and for a dtype that is not floating.
yoke_dtype sum_dtype(const yoke_tensor &x, const yoke_tensor &residual, const char *call)
{
    check_floating(x, call, "x");
    check_floating(residual, call, "residual");
    if (x.dtype == residual.dtype) return x.dtype;
    if (x.dtype != YOKE_F64 && residual.dtype != YOKE_F64) return YOKE_F32;
    fail(YOKE_E_TYPE, "%s: argument 'x' is %s, but 'residual' is %s; cast one of them first", call,
         name(x.dtype), name(residual.dtype));
}

// Raises unless a weight or bias, if present, has the dtype of the sum and the given shape.
void check_beside_sum(const yoke_tensor *p, const char *arg, yoke_dtype sum, IntList shape,
                      const char *call)
{
    if (!p) return;
    if (p->dtype != sum)
        fail(YOKE_E_TYPE, "%s: the sum is %s, but '%s' is %s; cast one of them first", call,
             name(sum), arg, name(p->dtype));
    if (!same(p->shape(), shape))
        fail(YOKE_E_VALUE, "%s: argument '%s' has shape %s; it must be 'normalized_shape', %s",
             call, arg, to_string(p->shape()).c_str(), to_string(shape).c_str());
}

yoke_dtype norm_dtype(yoke_dtype wanted, yoke_dtype sum, const char *call)
{
    if (wanted == YOKE_NONE || wanted == sum) return sum;
    if (sum != YOKE_F32 || !is_half(wanted))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'dtype' is %s, but the sum is %s; give the dtype of the sum, or a half if the sum is float32",
            call, name(wanted), name(sum));
    return wanted;
}

}  // namespace

void infer_add_layer_norm(AddLayerNormArgs a, Plan &plan)
{
    const char *call = plan.name();
    const yoke_tensor &x = a.x(), &residual = a.residual();
    if (!same(x.shape(), residual.shape()))
        fail(YOKE_E_VALUE, "%s: argument 'residual' has shape %s; it must be the shape of 'x', %s",
             call, to_string(residual.shape()).c_str(), to_string(x.shape()).c_str());
    const yoke_dtype sum = sum_dtype(x, residual, call);
    const int axis = check_normalized_shape(x, a.normalized_shape(), call);
    check_beside_sum(a.weight(), "weight", sum, a.normalized_shape(), call);
    check_beside_sum(a.bias(), "bias", sum, a.normalized_shape(), call);
    plan.result_like(x, sum);
    plan.result_like(x, norm_dtype(a.dtype(), sum, call));
    plan.result(outer_shape(x, axis), statistics_dtype(sum));  // mean
    plan.result(outer_shape(x, axis), statistics_dtype(sum));  // 1 / standard deviation
}

void vjp_add_layer_norm(AddLayerNormArgs a, Backward &b)
{
    const yoke_tensor &sum = b.out();
    const int axis = sum.ndim - static_cast<int>(a.normalized_shape().size());
    const bool of_sum = b.needs(a.kX) || b.needs(a.kResidual), of_weight = b.needs(a.kWeight),
               of_bias = b.needs(a.kBias), is_normalised = b.grad(1).present();
    Tensor dsum = b.grad(0), dweight, dbias;
    if (is_normalised && (of_sum || of_weight)) {
        auto gradients =
            ops::add_layer_norm_backward(b.grad(1), dsum.get(), sum, of_sum ? a.weight() : nullptr,
                                         b.out(2), b.out(3), axis, of_sum, of_weight || of_bias);
        dsum = std::move(gradients[0]), dweight = std::move(gradients[1]);
        dbias = std::move(gradients[2]);
    } else if (is_normalised) {
        dbias = sum_outer(ops::cast(b.grad(1), a.bias()->dtype), axis);
    }
    if (b.needs(a.kX)) b.set(a.kX, ops::cast(dsum, a.x().dtype));
    if (b.needs(a.kResidual)) b.set(a.kResidual, ops::cast(dsum, a.residual().dtype));
    if (is_normalised && of_weight) b.set(a.kWeight, std::move(dweight));
    if (is_normalised && of_bias) b.set(a.kBias, std::move(dbias));
}

void infer_add_layer_norm_backward(AddLayerNormBackwardArgs a, Plan &plan)
{
    const yoke_tensor &sum = a.sum();
    const IntList normalized = sum.shape().subspan(static_cast<size_t>(a.axis()));
    plan_gradient(plan, a.of_sum(), sum);
    plan_gradient(plan, a.of_weight(), normalized, sum.dtype);
    plan_gradient(plan, a.of_weight(), normalized, sum.dtype);
}

// ---- embedding -------------------------------------------------------------------------------------------

void infer_embedding(EmbeddingArgs a, Plan &plan)
{
    const yoke_tensor &index = a.index(), &weight = a.weight();
    check_index(index, plan.name(), "index");
    if (weight.ndim != 2)
        fail(YOKE_E_VALUE, "%s: argument 'weight' has shape %s; it must be [count, width]",
             plan.name(), to_string(weight.shape()).c_str());
    if (const auto padding = a.padding_idx()) {
        const int64_t count = weight.shape_[0];
        if (*padding < -count || *padding >= count)
            fail(
                YOKE_E_VALUE,
                "%s: argument 'padding_idx' is %lld; for a weight of shape %s it must be a row from %lld to %lld",
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
