// argmax and argmin: where the first of the largest, or smallest, elements is.
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// Finds the first of the best elements of a run without gaps. The largest elements are best if Extreme is
// kernels::Amax, the smallest if it is kernels::Amin. The team finds the best element of each item; then the best of
// these is chosen.
template <template <class> class Extreme, class T>
static yoke_status best_of_run(const yoke_launch *launch, const T *x, int64_t n, int64_t *out)
{
    int64_t items = divide_up(n, kItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)items * sizeof(int64_t))) return status;
    int64_t *best = static_cast<int64_t *>(scratch.data());
    parallel_items(items, [&](int64_t item) {
        int64_t begin = item * kItem;
        best[item] = begin + kernels::extreme_span<Extreme>(x + begin, 1, min(kItem, n - begin));
    });
    // A later item's best element replaces the chosen element only if it is better, so ties keep the earlier element.
    int64_t chosen = best[0];
    for (int64_t item = 1; item < items; item++) {
        compute_type<T> pair[2] = {load<T>(x[chosen]), load<T>(x[best[item]])};
        if (kernels::extreme_span<Extreme>(pair, 1, 2) == 1) chosen = best[item];
    }
    *out = chosen;
    return YOKE_OK;
}

template <template <class> class Extreme, class T>
static yoke_status best_of_all(const yoke_launch *launch, const yoke_operand &x, int64_t *out)
{
    if (is_contiguous(x)) return best_of_run<Extreme>(launch, data_of<T>(x), x.numel, out);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)x.numel * sizeof(T))) return status;
    int64_t strides[YOKE_MAX_NDIM];
    const yoke_operand dense = kernels::row_major(x, scratch.data(), x.dtype, strides);
    if (yoke_status status = copy_operand(launch, dense, x)) return status;
    return best_of_run<Extreme>(launch, data_of<T>(dense), x.numel, out);
}

constexpr int64_t kBestColumns = 256;  // rows that lie side by side, gone through together

// Finds the first of the best elements of `width` rows that lie side by side; their elements are `step` apart.
template <template <class> class Extreme, class T>
static void best_beside(const T *x, int64_t step, int64_t n, int64_t width, int32_t *best)
{
    using C = compute_type<T>;
    C top[kBestColumns];
    for (int64_t j = 0; j < width; j++) {
        top[j] = load<T>(x[j]);
        best[j] = 0;
    }
    for (int64_t i = 1; i < n; i++) {
        const T *row = x + i * step;
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            C value = load<T>(row[j]), held = top[j];
            constexpr bool kLargest = std::is_same_v<Extreme<T>, kernels::Amax<T>>;
            bool better = kLargest ? value > held : value < held;
            better |= (value != value) & (held == held);
            top[j] = kernels::select(better, value, held);
            best[j] = kernels::select(better, (int32_t)i, best[j]);
        }
    }
}

// Finds the best elements along an axis across which elements are neighbours in memory.
template <template <class> class Extreme, class T>
static void best_of_columns(const Axes &axes, int64_t n, int64_t stride)
{
    const Loop<2> &kept = axes.kept;
    const int64_t width = kept.shape[0], tiles = divide_up(width, kBestColumns);
    const int64_t count = tiles * (kept.numel / width);
    parallel_range(count, max(1, kGrain / (n * kBestColumns)), [&](int64_t begin, int64_t end) {
        int32_t best[kBestColumns];
        for (; begin < end; begin++) {
            const int64_t column = begin % tiles * kBestColumns;
            const Cursor<2> cursor(kept, begin / tiles * width + column);
            const int64_t columns = min(kBestColumns, width - column);
            best_beside<Extreme>((const T *)cursor.data[kX], stride, n, columns, best);
            for (int64_t j = 0; j < columns; j++)
                *(int64_t *)(cursor.data[kResult] + j * kept.stride[0][kResult]) = best[j];
        }
    });
}

template <template <class> class Extreme>
static yoke_status find_best(const yoke_launch *launch)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const yoke_arg &axis = launch->params[0];
    if (out.numel == 0) return YOKE_OK;
    if (x.numel == 0) return fail(YOKE_E_VALUE, "%s: x has no elements", op_name(launch->op));
    bool is_reduced[YOKE_MAX_NDIM];
    mark_axes(axis, x.ndim, is_reduced);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        if (axis.kind == YOKE_ARG_NONE || x.ndim <= 1)
            return best_of_all<Extreme, T>(launch, x, data_of<int64_t>(out));
        Axes axes(x, out, is_reduced);
        int64_t n = axes.reduced.numel, stride = axes.reduced.stride[0][0] / (int64_t)sizeof(T);
        if (axes.kept.stride[0][kX] == (int64_t)sizeof(T) && axes.kept.shape[0] >= 16 &&
            stride != 1 && n <= INT32_MAX) {
            best_of_columns<Extreme, T>(axes, n, stride);
            return (yoke_status)YOKE_OK;
        }
        parallel_range(axes.kept.numel, max(1, kGrain / n), [&](int64_t begin, int64_t end) {
            Cursor<2> cursor(axes.kept, begin);
            for (; begin < end; begin++, cursor.advance(axes.kept, 0, 1))
                *(int64_t *)cursor.data[kResult] =
                    kernels::extreme_span<Extreme>((const T *)cursor.data[kX], stride, n);
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_KERNEL(argmax)
{
    return find_best<kernels::Amax>(launch);
}

YOKE_KERNEL(argmin)
{
    return find_best<kernels::Amin>(launch);
}

YOKE_SIMD_END
