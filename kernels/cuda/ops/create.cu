// Tensors made from their indices alone, and triangles of matrices.
#include "kernels/common/index.h"
#include "kernels/common/stand_in.h"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// Writes x[i] = f(i), with i row-major over x's own shape.
template <class F>
__global__ void generate(char *x, int dtype, int64_t n, int64_t step, F f)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        put_one<Anything>(dtype, x + i * step, f(i));
}

// Range of integers, computed in int64 (wrapping). A range of floats is computed in double and rounded once.
struct IntegerRange {
    uint64_t from, by;
    __device__ int64_t operator()(int64_t i) const { return (int64_t)(from + (uint64_t)i * by); }
};
struct FloatRange {
    double from, by;
    __device__ double operator()(int64_t i) const { return from + (double)i * by; }
};

YOKE_KERNEL(_arange)
{
    const yoke_operand &x = launch->operands[0];
    const yoke_arg &first = launch->params[0], &by = launch->params[1];
    if (x.ndim != 1) return fail(YOKE_E_VALUE, 0, "_arange: x has %d axes; it must have 1", x.ndim);
    const int threads = block_size(kThreads);
    const Grid grid{blocks_for(launch, x.numel, threads), threads};
    const int64_t step = x.strides[0] * dtype_size(x.dtype);
    if (first.kind != YOKE_ARG_FLOAT && by.kind != YOKE_ARG_FLOAT)
        return start(launch, generate<IntegerRange>, grid, data_of<char>(x), x.dtype, x.numel, step,
                     IntegerRange{(uint64_t)first.v.i, (uint64_t)by.v.i});
    return start(launch, generate<FloatRange>, grid, data_of<char>(x), x.dtype, x.numel, step,
                 FloatRange{float_param(first), float_param(by)});
}

__global__ void write_eye(char *x, int dtype, int64_t rows, int64_t columns, int64_t row_step,
                          int64_t column_step)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = i / columns, column = i % columns;
        put_one<Anything>(dtype, x + row * row_step + column * column_step,
                          (int64_t)(row == column));
    }
}

YOKE_KERNEL(_eye)
{
    const yoke_operand &x = launch->operands[0];
    if (x.ndim != 2) return fail(YOKE_E_VALUE, 0, "_eye: x has %d axes; it must have 2", x.ndim);
    const int threads = block_size(kThreads);
    const int64_t size = dtype_size(x.dtype);
    return start(launch, write_eye, {blocks_for(launch, x.numel, threads), threads},
                 data_of<char>(x), x.dtype, x.shape[0], x.shape[1], x.strides[0] * size,
                 x.strides[1] * size);
}

// ---- triangles ------------------------------------------------------------------------------------------------------

// Copies the elements of the triangle, and writes 0 for other elements. Axes keep their order, so an element's number
// gives its row and column in the last two axes.
template <class T>
__global__ void keep_triangle(Walk<2> walk, Split rows, Split columns, int64_t diagonal,
                              bool is_upper)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < walk.numel;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t line = columns.quotient(i), column = i - line * columns.length,
                      row = line - rows.quotient(line) * rows.length;
        const kernels::Kept kept = is_upper
                                       ? kernels::UpperTriangle()(row, columns.length, diagonal)
                                       : kernels::LowerTriangle()(row, columns.length, diagonal);
        const Place<2> place = walk.at(i);
        *(T *)place.data[0] =
            column >= kept.first && column < kept.last ? *(const T *)place.data[1] : T(0);
    }
}

static yoke_status triangle(const yoke_launch *launch, bool is_upper)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const int threads = block_size(kThreads);
    Loop<2> loop;
    kernels::plan_ordered<2>(loop, {&out, &x}, 0, x.ndim);
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        return start(launch, keep_triangle<T>, {blocks_for(launch, x.numel, threads), threads},
                     Walk<2>(loop), Split(x.shape[x.ndim - 2], x.numel),
                     Split(x.shape[x.ndim - 1], x.numel), launch->params[0].v.i, is_upper);
    });
}

YOKE_KERNEL(tril)
{
    return triangle(launch, false);
}

YOKE_KERNEL(triu)
{
    return triangle(launch, true);
}

YOKE_CUDA_END
