// matmul.cpp: matrix products: shape rules and vjps.
#include "core/ops/family.h"

namespace yoke {

namespace {

void check_same_dtype(const yoke_tensor &x, const yoke_tensor &y, const char *second,
                      const char *call)
{
    if (x.dtype != y.dtype)
        fail(YOKE_E_TYPE, "%s: 'x' is %s and '%s' is %s; cast one of them first", call,
             name(x.dtype), second, name(y.dtype));
    if (x.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: bool tensors have no matrix product; cast them first", call);
}

// x as a matrix of rows: all axes but the last in one.
Tensor rows(const yoke_tensor &x)
{
    if (x.ndim == 2) return Tensor::share(const_cast<yoke_tensor *>(&x));
    int64_t count = 1;  // counted here, since a -1 says nothing where there are no columns
    for (const int64_t size : x.shape().first(static_cast<size_t>(x.ndim - 1))) count *= size;
    return ops::reshape(x, Dims{count, x.shape_[x.ndim - 1]});
}

Tensor transposed(const yoke_tensor &x)
{
    return ops::transpose(x, -2, -1);
}

}  // namespace

void infer_matmul(MatmulArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &y = a.y();
    check_same_dtype(x, y, "y", plan.name());
    if (x.ndim == 0 || y.ndim == 0)
        fail(YOKE_E_VALUE,
             "%s: 'x' has shape %s and 'y' %s; both need at least one axis, use mul for scalars",
             plan.name(), to_string(x.shape()).c_str(), to_string(y.shape()).c_str());
    const int64_t inner = x.shape_[x.ndim - 1], other = y.shape_[y.ndim == 1 ? 0 : y.ndim - 2];
    if (inner != other)
        fail(YOKE_E_VALUE,
             "%s: 'x' of shape %s has %lld columns, but 'y' of shape %s has %lld rows; they must "
             "agree",
             plan.name(), to_string(x.shape()).c_str(), static_cast<long long>(inner),
             to_string(y.shape()).c_str(), static_cast<long long>(other));
    const auto batch = [](const yoke_tensor &t) {
        return t.shape().first(static_cast<size_t>(std::max(t.ndim - 2, 0)));
    };
    Dims shape = broadcast(batch(x), batch(y), plan.name());
    if (x.ndim > 1) shape.push_back(x.shape_[x.ndim - 2]);
    if (y.ndim > 1) shape.push_back(y.shape_[y.ndim - 1]);
    plan.work(2.0 * static_cast<double>(checked_numel(shape, plan.name())) *
              static_cast<double>(inner));
    plan.result(shape, x.dtype);
}

void vjp_matmul(MatmulArgs a, Backward &b)
{
    // One-dimensional arguments become matrices, and the gradient with them.
    Tensor x = alias(a.x()), y = alias(a.y()), g = b.grad();
    if (y->ndim == 1) y = ops::unsqueeze(y, -1), g = ops::unsqueeze(g, -1);
    if (x->ndim == 1) x = ops::unsqueeze(x, 0), g = ops::unsqueeze(g, -2);
    if (b.needs(a.kX))
        b.set(a.kX, ops::reshape(sum_to(ops::matmul(g, transposed(y)), x->shape()), a.x().shape()));
    if (!b.needs(a.kY)) return;
    // One matrix against a batch: the batch is one long matrix, and no sum over it is needed.
    Tensor product =
        y->ndim == 2 ? ops::matmul(transposed(rows(x)), rows(g)) : ops::matmul(transposed(x), g);
    b.set(a.kY, ops::reshape(sum_to(product, y->shape()), a.y().shape()));
}

void infer_linear_internal(LinearInternalArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &weight = a.weight();
    check_same_dtype(x, weight, "weight", plan.name());
    check_floating(x, plan.name(), "x");
    if (weight.ndim != 2 || x.ndim == 0 || x.shape_[x.ndim - 1] != weight.shape_[1])
        fail(YOKE_E_VALUE,
             "%s: 'x' has shape %s and 'weight' %s; they must be [..., in] and [out, in]",
             plan.name(), to_string(x.shape()).c_str(), to_string(weight.shape()).c_str());
    if (const yoke_tensor *bias = a.bias()) {
        check_same_dtype(x, *bias, "bias", plan.name());
        if (bias->ndim != 1 || bias->shape_[0] != weight.shape_[0])
            fail(YOKE_E_VALUE,
                 "%s: 'bias' has shape %s; for a weight of shape %s it must be [%lld]", plan.name(),
                 to_string(bias->shape()).c_str(), to_string(weight.shape()).c_str(),
                 static_cast<long long>(weight.shape_[0]));
    }
    Dims shape{x.shape()};
    shape[x.ndim - 1] = weight.shape_[0];
    plan.result(shape, x.dtype);
    plan.work(2.0 * static_cast<double>(x.numel) * static_cast<double>(weight.shape_[0]));
}

void vjp_linear_internal(LinearInternalArgs a, Backward &b)
{
    if (b.needs(a.kX)) b.set(a.kX, ops::matmul(b.grad(), a.weight()));
    if (!b.needs(a.kWeight) && !b.needs(a.kBias)) return;
    const Tensor g = b.grad()->ndim == 1 ? ops::unsqueeze(b.grad(), 0) : rows(b.grad());
    if (b.needs(a.kWeight)) {
        const Tensor x = a.x().ndim == 1 ? ops::unsqueeze(a.x(), 0) : rows(a.x());
        b.set(a.kWeight, ops::matmul(transposed(g), x));
    }
    if (b.needs(a.kBias)) {
        const int64_t first = 0;
        b.set(a.kBias, ops::sum(g, IntList(&first, 1)));
    }
}

}  // namespace yoke
