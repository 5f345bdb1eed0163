// Casts, copies and fills over any strides. A transposing copy goes by tiles, so neither side wastes cache lines.
#include "kernels/cpu/simd/copy.h"

#include <cstring>

#include "kernels/common/copy_ops.h"
#include "kernels/common/optim_group.h"
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/map.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kTile = 32;

template <class T>
static void copy_tile(const Loop<2> &loop, int axis, char *const *data, int64_t rows,
                      int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        T *out = (T *)(data[0] + r * loop.stride[axis][0]);
        const char *in = data[1] + r * (int64_t)sizeof(T);
        int64_t step = loop.stride[0][1];
        for (int64_t c = 0; c < columns; c++) out[c] = *(const T *)(in + c * step);
    }
}

// Copies by tiles over `axis` and axis 0. The other axes, in order, number the planes of tiles.
template <class T>
static void copy_transposed(const Loop<2> &loop, int axis)
{
    Loop<2> planes = loop;
    for (int i = axis; i + 1 < planes.ndim; i++) {
        planes.shape[i] = planes.shape[i + 1];
        memcpy(planes.stride[i], planes.stride[i + 1], sizeof(planes.stride[i]));
    }
    planes.ndim--;
    int64_t rows = loop.shape[axis], columns = loop.shape[0];
    int64_t row_tiles = divide_up(rows, kTile), plane_count = loop.numel / rows / columns;
    int64_t tiles = row_tiles * plane_count;
    parallel_range(tiles, max(1, kGrain / (kTile * columns)), [&](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; tile++) {
            Cursor<2> plane(planes, tile / row_tiles, 1);
            int64_t row = tile % row_tiles * kTile;
            for (int64_t column = 0; column < columns; column += kTile) {
                char *data[2];
                for (int i = 0; i < 2; i++)
                    data[i] =
                        plane.data[i] + row * loop.stride[axis][i] + column * loop.stride[0][i];
                copy_tile<T>(loop, axis, data, min(kTile, rows - row),
                             min(kTile, columns - column));
            }
        }
    });
}

// Copies between operands of the same dtype: only the size of an element matters.
template <class T>
static yoke_status copy_same(const yoke_operand &dst, const yoke_operand &src)
{
    if (dst.numel == 0) return YOKE_OK;
    Loop<2> loop;
    plan_loop<2>(loop, {&dst, &src});
    if (int axis = kernels::transposed_axis(loop, sizeof(T))) {
        copy_transposed<T>(loop, axis);
        return YOKE_OK;
    }
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        walk<2>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            copy_run(data, stride, n, sizeof(T));
        });
    });
    return YOKE_OK;
}

// ---- casts ------------------------------------------------------------------------------------------------------

// Conversion to the float from which a narrow dtype is rounded, so any source is rounded only once.
template <class From>
struct BeforeNarrow {
    YOKE_HD float operator()(From x) const
    {
        if constexpr (std::is_same_v<From, double>)
            return kernels::f64_to_f32_odd(x);
        else if constexpr (std::is_same_v<From, int64_t>)
            return kernels::f64_to_f32_odd(kernels::i64_to_f64_odd(x));
        else if constexpr (std::is_same_v<From, int32_t>)
            return kernels::f64_to_f32_odd((double)x);
        else
            return convert<float>(x);
    }
};

template <class To, class From>
static yoke_status convert_all(const yoke_operand &dst, const yoke_operand &src)
{
    using Source = std::conditional_t<kernels::is_narrow<From>, float, From>;
    constexpr bool between_floats = (std::is_same_v<To, bf16> && std::is_same_v<From, float>) ||
                                    (std::is_same_v<To, float> && std::is_same_v<From, bf16>);
    if constexpr (std::is_same_v<To, From>)
        return YOKE_OK;
    else if constexpr (between_floats)  // autocast's usual case: no buffer between
        return map<To, From>(Converted<To, From>(), kGrain, dst, src);
    else if constexpr (kernels::is_narrow<To>)
        return map<float, Source>(BeforeNarrow<Source>(), kGrain, dst, src);
    else
        return map<To, Source>(Converted<To, Source>(), kGrain, dst, src);
}

yoke_status copy_operand(const yoke_launch *launch, const yoke_operand &dst,
                         const yoke_operand &src)
{
    if (dst.dtype == src.dtype)
        return for_size(launch, "src", dtype_size(src.dtype),
                        [&]<class T>() { return copy_same<T>(dst, src); });
    return for_stored(launch, "src", src.dtype, [&]<class From>() {
        return for_stored(launch, "x", dst.dtype,
                          [&]<class To>() { return convert_all<To, From>(dst, src); });
    });
}

yoke_status element_bits(const yoke_launch *launch, yoke_dtype dtype, const yoke_arg &value,
                         uint64_t *bits)
{
    *bits = 0;
    return for_stored(launch, "x", dtype, [&]<class T>() {
        *bits = kernels::bits_of<T>(value);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_COPY_KERNELS

YOKE_KERNEL(_cast_all)
{
    const int64_t count = kernels::count_written(launch);
    const yoke_operand *casts = launch->operands, *from = casts + count;
    yoke_status status = YOKE_OK;
    for (int64_t i = 0; i < count && !status; i++) status = copy_operand(launch, casts[i], from[i]);
    return status;
}

// Fills x with a value. The value is converted once to x's dtype, then copied from a local variable with strides of
// 0.
YOKE_KERNEL(fill_)
{
    const yoke_operand &x = launch->operands[0];
    uint64_t bits;
    if (yoke_status status = element_bits(launch, x.dtype, launch->params[0], &bits)) return status;
    return copy_operand(launch, x, kernels::single_value(x.dtype, &bits));
}

YOKE_SIMD_END
