// Losses of two broadcast tensors: element by element, or summed in the computing type as they are made, so that a half
// neither overflows nor rounds on the way.
#include "kernels/common/pair_loss.h"

#include <cstring>

#include "kernels/common/norm.h"
#include "kernels/common/reduce.h"
#include "kernels/cpu/simd/channels.h"

YOKE_SIMD_BEGIN

constexpr int64_t kLossItem = 65536;  // elements that one thread adds up
constexpr int64_t kLossChunk = 1024;  // elements made at a time

// Calls f with the functor that `kind` names.
template <class F>
static yoke_status for_kind(const yoke_launch *launch, const char *kind, double beta, const F &f)
{
    if (strcmp(kind, "mse") == 0) return f(kernels::SquaredError());
    if (strcmp(kind, "l1") == 0) return f(kernels::AbsoluteError());
    if (strcmp(kind, "smooth_l1") == 0) return f(kernels::SmoothL1{beta});
    if (strcmp(kind, "bce_logits") == 0) return f(kernels::LogitCrossEntropy());
    if (strcmp(kind, "bce") == 0) return f(kernels::BinaryCrossEntropy());
    if (strcmp(kind, "kl") == 0) return f(kernels::KlDivergence());
    if (strcmp(kind, "kl_log") == 0) return f(kernels::KlDivergenceOfLogs());
    return fail(YOKE_E_INTERNAL, "%s: there is no loss \"%s\"", op_name(launch->op), kind);
}

// The shape to which two operands broadcast, as an operand with no memory behind it.
struct BroadcastShape {
    yoke_operand operand{};
    int64_t shape[YOKE_MAX_NDIM], strides[YOKE_MAX_NDIM] = {};

    BroadcastShape(const yoke_operand &x, const yoke_operand &y)
    {
        int ndim = x.ndim > y.ndim ? x.ndim : y.ndim;
        operand.numel = 1;
        for (int axis = 0; axis < ndim; axis++) {
            int of_x = axis - (ndim - x.ndim), of_y = axis - (ndim - y.ndim);
            int64_t a = of_x < 0 ? 1 : x.shape[of_x], b = of_y < 0 ? 1 : y.shape[of_y];
            operand.numel *= shape[axis] = a == 1 ? b : a;
        }
        operand.data = x.data;  // a pointer to step from, by 0
        operand.shape = shape;
        operand.strides = strides;
        operand.ndim = ndim;
        operand.dtype = x.dtype;
    }
    BroadcastShape(const BroadcastShape &) = delete;
    BroadcastShape &operator=(const BroadcastShape &) = delete;
};

template <class T, class C>
static void store_run(const C *from, char *to, int64_t stride, int64_t n)
{
    if (stride == sizeof(T)) return kernels::convert_span(from, n, (T *)to);
    for (int64_t i = 0; i < n; i++) *(T *)(to + i * stride) = store<T>(from[i]);
}

// ---- values -----------------------------------------------------------------------------------------------------

template <class T, class F>
static void loss_run(const F &f, const char *x, int64_t x_step, const char *t, int64_t t_step,
                     int64_t n, compute_type<T> *out)
{
    using C = compute_type<T>;
    C x_buffer[kLossChunk], t_buffer[kLossChunk];
    const C *xs = load_run<T>(x, x_step, n, x_buffer), *ts = load_run<T>(t, t_step, n, t_buffer);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = f.value(xs[i], ts[i]);
}

// The sum over elements [begin, end): a buffer is filled, whatever the runs, and then added up.
template <class T, class F>
static compute_type<T> sum_losses(const F &f, const Loop<3> &loop, int64_t begin, int64_t end)
{
    using C = compute_type<T>;
    C buffer[kLossChunk], total = (C)0;
    int64_t filled = 0;
    auto add_up = [&] {
        total += kernels::sum_block<C>(0, filled, [&](int64_t i) { return buffer[i]; });
        filled = 0;
    };
    walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t first = 0; first < n;) {
            int64_t count = min(n - first, kLossChunk - filled);
            loss_run<T>(f, data[1] + first * stride[1], stride[1], data[2] + first * stride[2],
                        stride[2], count, buffer + filled);
            first += count;
            filled += count;
            if (filled == kLossChunk) add_up();
        }
    });
    add_up();
    return total;
}

template <class T, class F>
static yoke_status reduced_loss(const yoke_launch *launch, const F &f, const Loop<3> &loop,
                                double divisor)
{
    using C = compute_type<T>;
    int64_t items = divide_up(loop.numel, kLossItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(items + 1) * sizeof(C))) return status;
    C *sums = static_cast<C *>(scratch.data());
    if (items)
        parallel_items(items, [&](int64_t item) {
            sums[item] =
                sum_losses<T>(f, loop, item * kLossItem, min(loop.numel, (item + 1) * kLossItem));
        });
    C total = kernels::reduce_span(kernels::Sum<C>(), sums, 1, items);
    *data_of<T>(launch->operands[2]) = store<T>(total / (C)divisor);
    return YOKE_OK;
}

template <class T, class F>
static void each_loss(const F &f, const Loop<3> &loop)
{
    using C = compute_type<T>;
    parallel_range(loop.numel, kGrain / 2, [&](int64_t begin, int64_t end) {
        walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            C buffer[kLossChunk];
            for (int64_t first = 0; first < n; first += kLossChunk) {
                int64_t count = min(kLossChunk, n - first);
                loss_run<T>(f, data[1] + first * stride[1], stride[1], data[2] + first * stride[2],
                            stride[2], count, buffer);
                store_run<T>(buffer, data[0] + first * stride[0], stride[0], count);
            }
        });
    });
}

// Refuses what is no probability, NaN included, before a logarithm makes something of it.
static yoke_status check_probabilities(const yoke_launch *launch, const yoke_operand &x)
{
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        Loop<1> loop;
        plan_loop<1>(loop, {&x});
        bool bad = false;
        C found = (C)0;
        walk<1>(loop, 0, loop.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
            for (int64_t first = 0; first < n && !bad; first += kLossChunk) {
                C buffer[kLossChunk];
                int64_t count = min(kLossChunk, n - first);
                const C *xs = load_run<T>(data[0] + first * stride[0], stride[0], count, buffer);
                int outside = 0;
                for (int64_t i = 0; i < count; i++) outside |= !(xs[i] >= (C)0) | !(xs[i] <= (C)1);
                for (int64_t i = 0; i < count && outside && !bad; i++)
                    if (!(xs[i] >= (C)0 && xs[i] <= (C)1)) bad = true, found = xs[i];
            }
        });
        if (!bad) return (yoke_status)YOKE_OK;
        return fail(YOKE_E_VALUE,
                    "binary_cross_entropy: 'x' has the element %g; probabilities lie between 0 and "
                    "1 (logits are for binary_cross_entropy_with_logits)",
                    (double)found);
    });
}

YOKE_KERNEL(_pair_loss)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const yoke_arg *p = launch->params;
    bool reduce = p[2].v.i != 0;
    double divisor = float_param(p[3]);
    if (strcmp(p[0].v.string, "bce") == 0)
        if (yoke_status status = check_probabilities(launch, x)) return status;
    BroadcastShape shape(x, target);
    Loop<3> loop;
    plan_loop<3>(loop, {reduce ? &shape.operand : &out, &x, &target});
    return for_kind(launch, p[0].v.string, float_param(p[1]), [&](const auto &f) {
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            if (reduce) return reduced_loss<T>(launch, f, loop, divisor);
            each_loss<T>(f, loop);
            return (yoke_status)YOKE_OK;
        });
    });
}

// ---- gradients --------------------------------------------------------------------------------------------------

template <class T, class Slope>
static void each_gradient(const Slope &slope, const Loop<4> &loop, compute_type<T> scale)
{
    using C = compute_type<T>;
    parallel_range(loop.numel, kGrain / 2, [&](int64_t begin, int64_t end) {
        walk<4>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            C g_buffer[kLossChunk], x_buffer[kLossChunk], t_buffer[kLossChunk], out[kLossChunk];
            for (int64_t first = 0; first < n; first += kLossChunk) {
                int64_t count = min(kLossChunk, n - first);
                auto run = [&](int i, C *buffer) {
                    return load_run<T>(data[i] + first * stride[i], stride[i], count, buffer);
                };
                const C *g = run(1, g_buffer), *x = run(2, x_buffer), *t = run(3, t_buffer);
#pragma omp simd
                for (int64_t i = 0; i < count; i++) out[i] = g[i] * scale * slope(x[i], t[i]);
                store_run<T>(out, data[0] + first * stride[0], stride[0], count);
            }
        });
    });
}

YOKE_KERNEL(_pair_loss_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    bool of_target = p[3].v.i != 0;
    Loop<4> loop;
    plan_loop<4>(loop, {&o[3], &o[0], &o[1], &o[2]});
    return for_kind(launch, p[0].v.string, float_param(p[1]), [&](const auto &f) {
        return for_float(launch, "x", o[1].dtype, [&]<class T>() {
            using C = compute_type<T>;
            C scale = (C)(1 / float_param(p[2]));
            if (of_target)
                each_gradient<T>(
                    [=](C x, C t) __attribute__((always_inline)) { return f.of_target(x, t); },
                    loop, scale);
            else
                each_gradient<T>(
                    [=](C x, C t) __attribute__((always_inline)) { return f.of_x(x, t); }, loop,
                    scale);
            return (yoke_status)YOKE_OK;
        });
    });
}

YOKE_SIMD_END
