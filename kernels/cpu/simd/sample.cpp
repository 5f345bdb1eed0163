// Draws by probabilities and weights. This file is compiled without contraction, as kernels/common/random_math.h asks.
#include "kernels/common/sample.h"

#include "kernels/common/draw.h"
#include "kernels/cpu/simd/share.h"

YOKE_SIMD_BEGIN

constexpr int64_t kDrawn = 256;  // numbers drawn at once; whole blocks of the generator

// ---- bernoulli ------------------------------------------------------------------------------------------------------

template <class T>
static yoke_status happen(const yoke_operand &x, const yoke_operand &out,
                          const kernels::DrawPlace &place)
{
    using C = compute_type<T>;
    const T *p = data_of<T>(x);
    for (int64_t i = 0; i < x.numel; i++)
        if (const C v = load<T>(p[i]); !(v >= (C)0 && v <= (C)1))
            return fail(
                YOKE_E_VALUE,
                "bernoulli: element %lld of x is %g; it must be a probability between 0 and 1",
                (long long)i, (double)v);
    parallel_shares(divide_up(x.numel, kDrawn), 32, [&](int64_t begin, int64_t end) {
        C units[kDrawn];
        for (int64_t first = begin * kDrawn; first < min(end * kDrawn, x.numel); first += kDrawn) {
            const int64_t n = min(kDrawn, x.numel - first);
            constexpr kernels::Uniform<C> draw{};
            const uint64_t counter = place.offset + (uint64_t)(first / draw.kDraws);
            kernels::random_fill<C>(draw, place.seed, counter, 0, n, units);
            for (int64_t i = 0; i < n; i++)
                data_of<T>(out)[first + i] =
                    store<T>(units[i] < load<T>(p[first + i]) ? (C)1 : (C)0);
        }
    });
    return YOKE_OK;
}

YOKE_KERNEL(_bernoulli)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        return happen<T>(x, out, kernels::DrawPlace(launch->params));
    });
}

// ---- multinomial ----------------------------------------------------------------------------------------------------

// Checks the rows of weights. At least `count` weights of each row must be above 0.
template <class T>
static yoke_status check_weights(const yoke_operand &x, int64_t count)
{
    using C = compute_type<T>;
    const int64_t n = x.shape[1];
    for (int64_t row = 0; row < x.shape[0]; row++) {
        const T *weights = data_of<T>(x) + row * n;
        int64_t above = 0;
        for (int64_t i = 0; i < n; i++) {
            const C w = load<T>(weights[i]);
            if (!kernels::is_weight(w))
                return fail(
                    YOKE_E_VALUE,
                    "multinomial: weight %lld of row %lld of x is %g; weights are finite, and 0 or more",
                    (long long)i, (long long)row, (double)w);
            above += w > (C)0;
        }
        if (above < count)
            return fail(
                YOKE_E_VALUE,
                "multinomial: row %lld of x has %lld weights above 0; it needs %lld for this draw",
                (long long)row, (long long)above, (long long)count);
    }
    return YOKE_OK;
}

// Fills a row of keys. Element `first` of the draw belongs to the row's first weight.
template <class T>
static void race_row(const T *weights, int64_t n, int64_t first, const kernels::DrawPlace &place,
                     compute_type<T> *keys)
{
    using C = compute_type<T>;
    const kernels::Exponential<C> draw{(C)1};
    C most = (C)0;
    for (int64_t i = 0; i < n; i++) {
        const C w = load<T>(weights[i]);
        most = w > most ? w : most;
    }
    kernels::random_fill<C>(draw, place.seed, place.offset, first, first + n, keys - first);
    for (int64_t i = 0; i < n; i++)
        keys[i] = kernels::race_key((C)load<T>(weights[i]), most, keys[i]);
}

YOKE_KERNEL(_race)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int64_t count = launch->params[0].v.i, n = x.shape[1];
    const kernels::DrawPlace place(launch->params + 1);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        if (const yoke_status status = check_weights<T>(x, count)) return status;
        parallel_shares(x.shape[0], max(1, kGrain / 8 / n), [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; row++)
                race_row(data_of<T>(x) + row * n, n, row * n, place,
                         data_of<compute_type<T>>(out) + row * n);
        });
        return (yoke_status)YOKE_OK;
    });
}

// Writes the sums of a row of weights to the end of each chunk. Returns the total.
template <class T>
static double find_ends(const T *weights, int64_t n, double *ends)
{
    double sum = 0;
    for (int64_t first = 0; first < n; first += kernels::kWeightChunk) {
        sum += kernels::total_of(weights + first, min(kernels::kWeightChunk, n - first));
        *ends++ = sum;
    }
    return sum;
}

template <class T>
static yoke_status sample(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    const int64_t n = x.shape[1], rows = x.shape[0], count = out.shape[1],
                  chunks = divide_up(n, kernels::kWeightChunk);
    if (const yoke_status status = check_weights<T>(x, 1)) return status;
    const kernels::DrawPlace place(launch->params + 1);
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve((uint64_t)(rows * chunks) * sizeof(double)))
        return status;
    double *ends = scratch.as<double>();
    for (int64_t row = 0; row < rows; row++)
        if (!(find_ends(data_of<T>(x) + row * n, n, ends + row * chunks) < kernels::kInfinity))
            return fail(
                YOKE_E_VALUE,
                "multinomial: the sum of row %lld of x is beyond the largest double; divide the weights",
                (long long)row);
    parallel_shares(rows * count, 256, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t row = i / count;
            data_of<int64_t>(out)[i] =
                kernels::index_at(kernels::unit_at(place.seed, place.offset, i),
                                  data_of<T>(x) + row * n, n, ends + row * chunks);
        }
    });
    return YOKE_OK;
}

YOKE_KERNEL(_multinomial)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype, [&]<class T>() { return sample<T>(launch, x, out); });
}

YOKE_SIMD_END
