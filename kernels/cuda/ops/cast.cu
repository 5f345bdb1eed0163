// Casts, copies and fills of any strides. A transposing copy goes through tiles of shared memory, so both its sides
// are read and written in runs.
#include "kernels/common/copy_ops.h"
#include "kernels/common/stand_in.h"
#include "kernels/cuda/ops/copy_strided.cuh"

YOKE_CUDA_BEGIN

constexpr int kTile = 32, kTileRows = 8;

// Copies planes in tiles through shared memory. In the source, neighbours along a column are dense; in the
// destination, neighbours along a row.
template <class T>
__global__ void copy_tiles(Walk<2> planes, int64_t rows, int64_t columns, int64_t out_step,
                           int64_t in_step)
{
    YOKE_SHARED(T, tile,
                kTile * (kTile + 1));  // the odd row length spreads a column over the banks
    const int64_t across = divide_up(columns, kTile), down = divide_up(rows, kTile);
    const int64_t plane = blockIdx.x / (across * down), rest = blockIdx.x % (across * down);
    const int64_t row = rest / across * kTile, column = rest % across * kTile;
    const Place<2> place = planes.at(plane);
    const int within = (int)threadIdx.x % kTile, line = (int)threadIdx.x / kTile;
    for (int k = line; k < kTile; k += kTileRows)
        if (row + within < rows && column + k < columns)
            tile[k * (kTile + 1) + within] = *(const T *)(place.data[1] + (column + k) * in_step +
                                                          (row + within) * (int64_t)sizeof(T));
    __syncthreads();
    for (int k = line; k < kTile; k += kTileRows)
        if (row + k < rows && column + within < columns)
            *(T *)(place.data[0] + (row + k) * out_step + (column + within) * (int64_t)sizeof(T)) =
                tile[within * (kTile + 1) + k];
}

template <class T>
static yoke_status start_tiles(const yoke_launch *launch, const Loop<2> &loop, int axis)
{
    Loop<2> planes;
    planes.ndim = 0;
    planes.numel = 1;
    for (int i = 0; i < 2; i++) planes.data[i] = loop.data[i];
    for (int a = 1; a < loop.ndim; a++)
        if (a != axis) add_axis<2>(planes, loop.shape[a], loop.stride[a]);
    finish_loop<2>(planes);
    const int64_t rows = loop.shape[axis], columns = loop.shape[0];
    const int64_t blocks = planes.numel * divide_up(rows, kTile) * divide_up(columns, kTile);
    return start(launch, copy_tiles<T>, {blocks, kTile * kTileRows}, Walk<2>(planes), rows, columns,
                 loop.stride[axis][0], loop.stride[0][1]);
}

// Function that returns its argument, for copies and casts.
struct Same {
    template <class C>
    YOKE_HD C operator()(C x) const
    {
        return x;
    }
};

// Copies between operands of the same dtype: only the size of an element matters.
static yoke_status copy_same(const yoke_launch *launch, const yoke_operand &dst,
                             const yoke_operand &src)
{
    if (dst.numel == 0) return YOKE_OK;
    if (!(src.flags & YOKE_OPERAND_SCALAR)) {
        Loop<2> loop;
        plan_loop<2>(loop, {&dst, &src});
        if (const int axis = kernels::transposed_axis(loop, dtype_size(src.dtype)))
            return for_size(launch, "src", dtype_size(src.dtype),
                            [&]<class T>() { return start_tiles<T>(launch, loop, axis); });
    }
    return map<Words>(launch, dst, Same(), src);
}

yoke_status copy_operand(const yoke_launch *launch, const yoke_operand &dst,
                         const yoke_operand &src)
{
    if (dst.dtype == src.dtype) return copy_same(launch, dst, src);
    return for_stored_format(launch, "src", src.dtype, [&]<class From>() {
        return map<From, Anything>(launch, dst, Same(), src);
    });
}

YOKE_COPY_KERNELS

YOKE_KERNEL(fill_)
{
    const yoke_operand &x = launch->operands[0];
    yoke_operand source = kernels::single_value(x.dtype);
    const yoke_status status = for_stored(launch, "x", x.dtype, [&]<class T>() {
        source.immediate = kernels::bits_of<T>(launch->params[0]);
        return (yoke_status)YOKE_OK;
    });
    return status ? status : copy_operand(launch, x, source);
}

YOKE_CUDA_END
