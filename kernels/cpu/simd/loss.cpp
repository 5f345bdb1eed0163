// Cross entropy of logits and class indices, and its gradient: two passes over the logits, without a stored softmax.
// Also the negative log likelihood of log-probabilities.
#include "kernels/common/loss.h"
#include "kernels/common/named.h"

#include <cstring>

#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// The arguments both directions share.
struct Classes {
    const yoke_operand &x, &target;
    int64_t rows, count, ignored;
    double smoothing;
    kernels::LossReduction reduction;
    const char *call;

    Classes(const yoke_operand &logits, const yoke_operand &indices, const yoke_arg *params,
            double label_smoothing, const char *name)
        : x(logits),
          target(indices),
          rows(logits.shape[0]),
          count(logits.shape[1]),
          ignored(params[1].v.i),
          smoothing(label_smoothing),
          reduction(params[0]),
          call(name)
    {
    }

    int64_t at(int64_t row) const
    {
        int64_t place = target.ndim ? row * target.strides[0] : 0;
        return target.dtype == YOKE_I64 ? data_of<int64_t>(target)[place]
                                        : data_of<int32_t>(target)[place];
    }

    // Checks all targets before the first target is used. Returns the failure of the first invalid target. Counts the
    // rows that are not ignored.
    yoke_status check(const yoke_launch *launch, int64_t *used) const
    {
        if (target.dtype != YOKE_I64 && target.dtype != YOKE_I32)
            return bad_dtype(launch, "target", target.dtype);
        *used = 0;
        for (int64_t row = 0; row < rows; row++) {
            int64_t index = at(row);
            if (index == ignored) continue;
            ++*used;
            if (index < 0 || index >= count)
                return fail(
                    YOKE_E_INDEX,
                    "%s: target[%lld] is %lld, which is not a class of x: use 0 to %lld, or ignore_index (%lld)",
                    call, (long long)row, (long long)index, (long long)count - 1,
                    (long long)ignored);
        }
        return YOKE_OK;
    }
};

// Returns the loss of a row; 0 if the row is ignored. Writes the row's maximum, and the logarithm of the sum of exp(x
// - maximum), into `norms`.
template <class T>
static compute_type<T> row_loss(const Classes &classes, const T *x, int64_t index,
                                compute_type<T> *norms)
{
    using C = compute_type<T>;
    int64_t stride = classes.x.strides[1];
    auto state = kernels::softmax_state(x, stride, classes.count);
    norms[0] = state.max;
    norms[1] = kernels::log(state.sum);
    if (index == classes.ignored) return (C)0;
    C loss = state.cross_entropy(load<T>(x[index * stride]));
    if (classes.smoothing == 0) return loss;
    const kernels::Sum<T> add;
    const auto sum = kernels::reduce_span(add, x, stride, classes.count);
    C uniform = state.cross_entropy((C)add.mean(sum, (double)classes.count));
    return loss + (C)classes.smoothing * (uniform - loss);
}

template <class T>
static yoke_status mean_loss(const yoke_launch *launch, const Classes &classes, int64_t used)
{
    using C = compute_type<T>;
    const yoke_operand &loss = launch->operands[2];
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)classes.rows * sizeof(C))) return status;
    C *losses = static_cast<C *>(scratch.data()), *norms = data_of<C>(launch->operands[3]);
    int64_t grain = max(1, kGrain / 8 / max(1, classes.count));
    parallel_range(classes.rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++)
            losses[row] = row_loss<T>(classes, data_of<T>(classes.x) + row * classes.x.strides[0],
                                      classes.at(row), &norms[2 * row]);
    });
    *data_of<C>(launch->operands[4]) = (C)used;
    if (classes.reduction.none) {
        int64_t step = loss.ndim ? loss.strides[0] : 1;
        for (int64_t row = 0; row < classes.rows; row++)
            data_of<T>(loss)[row * step] = store<T>(losses[row]);
        return YOKE_OK;
    }
    const kernels::Sum<C> add;
    const auto total = kernels::reduce_span(add, losses, 1, classes.rows);
    *data_of<T>(loss) = convert<T>(add.mean(total, classes.reduction.mean ? (double)used : 1.0));
    return YOKE_OK;
}

YOKE_KERNEL(_cross_entropy)
{
    const yoke_operand &x = launch->operands[0];
    Classes classes(x, launch->operands[1], launch->params, float_param(launch->params[2]),
                    "cross_entropy");
    int64_t used = 0;
    if (yoke_status status = classes.check(launch, &used)) return status;
    yoke_dtype loss = launch->operands[2].dtype;
    if (loss != x.dtype) return bad_dtype(launch, "the result", loss);
    return for_float(launch, "x", x.dtype,
                     [&]<class T>() { return mean_loss<T>(launch, classes, used); });
}

// Writes the gradient of a row: g (p_j - smoothing / classes), and at the target another -g (1 - smoothing).
template <class T>
static void row_gradient(const Classes &classes, const T *x, const compute_type<T> *norms,
                         int64_t index, compute_type<T> g, T *dx, int64_t dx_stride)
{
    using C = compute_type<T>;
    int64_t n = classes.count, stride = classes.x.strides[1];
    // Apart, since their sum would be off by a rounding of the greater.
    const C most = norms[0], log_sum = norms[1];
    C share = (C)(classes.smoothing / (double)n), rest = (C)(1 - classes.smoothing);
    if (stride == 1 && dx_stride == 1) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            dx[j] = store<T>(g * (kernels::exp((load<T>(x[j]) - most) - log_sum) - share));
    } else {
        for (int64_t j = 0; j < n; j++)
            dx[j * dx_stride] =
                store<T>(g * (kernels::exp((load<T>(x[j * stride]) - most) - log_sum) - share));
    }
    C p = kernels::exp((load<T>(x[index * stride]) - most) - log_sum) - share;
    dx[index * dx_stride] = store<T>(g * (p - rest));
}

template <class T>
static yoke_status logit_gradient(const yoke_launch *launch, const Classes &classes)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const yoke_operand &grad = o[0], &norms = o[3], &dx = o[5];
    C divisor = classes.reduction.mean ? *data_of<C>(o[4]) : (C)1;
    int64_t grad_step = grad.ndim ? grad.strides[0] : 0;
    int64_t grain = max(1, kGrain / 8 / max(1, classes.count));
    parallel_range(classes.rows, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; row++) {
            T *to = data_of<T>(dx) + row * dx.strides[0];
            int64_t index = classes.at(row);
            if (index == classes.ignored) {
                for (int64_t j = 0; j < classes.count; j++) to[j * dx.strides[1]] = store<T>(0);
                continue;
            }
            C g = load<T>(data_of<T>(grad)[row * grad_step]) / divisor;
            row_gradient<T>(classes, data_of<T>(classes.x) + row * classes.x.strides[0],
                            data_of<C>(norms) + 2 * row, index, g, to, dx.strides[1]);
        }
    });
    return YOKE_OK;
}

YOKE_KERNEL(_cross_entropy_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    Classes classes(x, launch->operands[2], launch->params, float_param(launch->params[2]),
                    "cross_entropy");
    int64_t used = 0;
    if (yoke_status status = classes.check(launch, &used)) return status;
    if (grad.dtype != x.dtype) return bad_dtype(launch, "grad", grad.dtype);
    return for_float(launch, "x", x.dtype,
                     [&]<class T>() { return logit_gradient<T>(launch, classes); });
}

// ---- nll_loss ---------------------------------------------------------------------------------------------------

template <class T>
static yoke_status likelihood_loss(const yoke_launch *launch, const Classes &classes, int64_t used)
{
    using C = compute_type<T>;
    const yoke_operand &x = classes.x, &loss = launch->operands[2];
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(classes.rows + 1) * sizeof(C)))
        return status;
    C *losses = static_cast<C *>(scratch.data());
    for (int64_t row = 0; row < classes.rows; row++) {
        int64_t index = classes.at(row);
        const T *at = data_of<T>(x) + row * x.strides[0];
        losses[row] = index == classes.ignored ? (C)0 : -load<T>(at[index * x.strides[1]]);
    }
    *data_of<C>(launch->operands[3]) = (C)used;
    for (int64_t row = 0; classes.reduction.none && row < classes.rows; row++)
        data_of<T>(loss)[row] = store<T>(losses[row]);
    if (classes.reduction.none) return YOKE_OK;
    const kernels::Sum<C> add;
    const auto total = kernels::reduce_span(add, losses, 1, classes.rows);
    *data_of<T>(loss) = convert<T>(add.mean(total, classes.reduction.mean ? (double)used : 1.0));
    return YOKE_OK;
}

YOKE_KERNEL(_nll_loss)
{
    const yoke_operand &x = launch->operands[0];
    Classes classes(x, launch->operands[1], launch->params, 0, "nll_loss");
    int64_t used = 0;
    if (yoke_status status = classes.check(launch, &used)) return status;
    return for_float(launch, "x", x.dtype,
                     [&]<class T>() { return likelihood_loss<T>(launch, classes, used); });
}

YOKE_KERNEL(_nll_loss_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &grad = o[0], &dx = o[4];
    Classes classes(o[1], o[2], launch->params, 0, "nll_loss");
    int64_t used = 0;
    if (yoke_status status = classes.check(launch, &used)) return status;
    return for_float(launch, "x", dx.dtype, [&]<class T>() {
        using C = compute_type<T>;
        C divisor = classes.reduction.mean ? *data_of<C>(o[3]) : (C)1;
        int64_t step = grad.ndim ? grad.strides[0] : 0;
        memset(dx.data, 0, (size_t)dx.numel * sizeof(T));
        for (int64_t row = 0; row < classes.rows; row++) {
            int64_t index = classes.at(row);
            if (index == classes.ignored) continue;
            C g = load<T>(data_of<T>(grad)[row * step]);
            data_of<T>(dx)[row * classes.count + index] = store<T>(-g / divisor);
        }
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
