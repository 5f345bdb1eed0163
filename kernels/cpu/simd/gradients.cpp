// Work on all gradients (or weights) at once: loss scaling, norm and clipping, averages.
#include "kernels/common/optim.h"
#include "kernels/common/vector_norm.h"

#include "kernels/cpu/simd/multi_tensor.h"

YOKE_SIMD_BEGIN

// ---- loss scaling ------------------------------------------------------------------------------------------------

template <class C>
static bool unscale_run(C *x, C factor, int64_t n)
{
    auto bad = kernels::not_finite((C)0);
#pragma omp simd reduction(| : bad)
    for (int64_t i = 0; i < n; i++) {
        x[i] *= factor;
        bad |= kernels::not_finite(x[i]);
    }
    return bad != 0;
}

YOKE_KERNEL(_unscale)
{
    int64_t count = launch->operand_count - 2;
    const yoke_operand *grads = launch->operands;
    float factor = kernels::unscale_factor(*data_of<float>(grads[count + 1]));
    int found = 0;  // any thread may set it, to the same value
    for_tensors(grads, count, [&](int64_t i, int64_t from, int64_t to) {
        with_compute_type(grads[i].dtype, [&]<class C>() {
            for_runs<C, 1>({&grads[i]}, 1u, 1u, from, to, [&](C **x, int64_t n) {
                if (unscale_run<C>(x[0], (C)factor, n))
                    __atomic_store_n(&found, 1, __ATOMIC_RELAXED);
            });
        });
    });
    *data_of<float>(grads[count]) = (float)__atomic_load_n(&found, __ATOMIC_RELAXED);
    return YOKE_OK;
}

YOKE_KERNEL(_update_scale)
{
    const yoke_operand *operands = launch->operands;
    const yoke_arg *params = launch->params;
    bool overflowed = false;
    for (int64_t i = 2; i < launch->operand_count; i++)
        overflowed |= *data_of<float>(operands[i]) != 0;
    kernels::ScaleRule rule{float_param(params[0]), float_param(params[1]), params[2].v.i,
                            (float)float_param(params[3])};
    rule(*data_of<float>(operands[0]), *data_of<int32_t>(operands[1]), overflowed);
    return YOKE_OK;
}

// ---- norm and clipping -------------------------------------------------------------------------------------------

// Returns the largest magnitude. Magnitudes are compared as bits, so NaN wins: its bits are the largest.
static double largest_run(const float *x, int64_t n)
{
    int32_t best = 0;
#pragma omp simd reduction(max : best)
    for (int64_t i = 0; i < n; i++) {
        int32_t size = kernels::bit_cast<int32_t>(x[i]) & 0x7fffffff;
        best = size > best ? size : best;
    }
    return (double)kernels::bit_cast<float>(best);
}

static double largest_run(const double *x, int64_t n)
{
    int64_t best = 0;
#pragma omp simd reduction(max : best)
    for (int64_t i = 0; i < n; i++) {
        int64_t size = kernels::bit_cast<int64_t>(x[i]) & 0x7fffffffffffffff;
        best = size > best ? size : best;
    }
    return kernels::bit_cast<double>(best);
}

using kernels::OrderAny;
using kernels::OrderTwo;
using kernels::ScaledSum;
using kernels::SumNorm;

// Returns the sum of squares: of floats in double, of doubles with a scale.
static ScaledSum square_run(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return {1, sum};
}

static ScaledSum square_run(const double *x, int64_t n)
{
    return kernels::reduce_span(SumNorm<double, OrderTwo>{}, x, 1, n);
}

// Returns the sum of |x|^p, or the largest |x| for an infinite p. The sum neither overflows nor loses small terms.
template <class C>
static ScaledSum power_run(const C *x, int64_t n, const kernels::TotalNorm &of)
{
    if (of.is_max()) return {1, largest_run(x, n)};
    if (of.p == 2) return square_run(x, n);
    if (of.p != 1)
        return SumNorm<double, OrderAny>{{of.p}}.careful(n, [=](int64_t i) { return x[i]; });
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += __builtin_fabs((double)x[i]);
    return {1, sum};
}

YOKE_KERNEL(_total_norm)
{
    constexpr int64_t kChunk = 65536;  // fixed, so that the result does not depend on the threads
    int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands, &out = tensors[count];
    const kernels::TotalNorm of{float_param(launch->params[0])};
    int64_t total = total_numel(tensors, count), chunks = max(divide_up(total, kChunk), 1);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)chunks * sizeof(ScaledSum))) return status;
    auto *partial = static_cast<ScaledSum *>(scratch.data());
    auto chunk = [&](int64_t k) {
        ScaledSum sum{1, 0};
        int64_t begin = k * kChunk, end = min(total, begin + kChunk);
        for_parts(tensors, count, begin, end, [&](int64_t i, int64_t from, int64_t to) {
            with_compute_type(tensors[i].dtype, [&]<class C>() {
                for_runs<C, 1>({&tensors[i]}, 1u, 0u, from, to, [&](C **x, int64_t n) {
                    sum = of.combine(sum, power_run<C>(x[0], n, of));
                });
            });
        });
        partial[k] = sum;
    };
    parallel_items(chunks, chunk);
    ScaledSum sum{1, 0};
    for (int64_t k = 0; k < chunks; k++) sum = of.combine(sum, partial[k]);
    *data_of<double>(out) = of.project(sum);
    return YOKE_OK;
}

template <class C>
static void scale_run(C *x, C factor, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

YOKE_KERNEL(_clip_all)
{
    int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands, &norm = tensors[count];
    const double size = *data_of<double>(norm), most = float_param(launch->params[0]);
    if (kernels::clip_factor(size, most) == 1) return YOKE_OK;
    for_tensors(tensors, count, [&](int64_t i, int64_t from, int64_t to) {
        with_compute_type(tensors[i].dtype, [&]<class C>() {
            const kernels::ClipFactors<C> factors = kernels::clip_factors<C>(size, most);
            for_runs<C, 1>({&tensors[i]}, 1u, 1u, from, to, [&](C **x, int64_t n) {
                if (factors.first != (C)1) scale_run(x[0], factors.first, n);
                scale_run(x[0], factors.second, n);
            });
        });
    });
    return YOKE_OK;
}

// ---- averages ----------------------------------------------------------------------------------------------------

YOKE_KERNEL(_lerp_all)
{
    int64_t count = launch->operand_count / 2;
    const yoke_operand *averages = launch->operands, *tensors = averages + count;
    double weight = float_param(launch->params[0]);
    for_tensors(averages, count, [&](int64_t i, int64_t from, int64_t to) {
        with_compute_type(averages[i].dtype, [&]<class C>() {
            for_runs<C, 2>({&averages[i], &tensors[i]}, 3u, 1u, from, to, [&](C **x, int64_t n) {
                C *average = x[0], w = (C)weight;
                const C *value = x[1];
#pragma omp simd
                for (int64_t k = 0; k < n; k++) average[k] += w * (value[k] - average[k]);
            });
        });
    });
    return YOKE_OK;
}

YOKE_SIMD_END
