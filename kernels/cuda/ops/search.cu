// _searchsorted: places in sorted rows.
#include "kernels/common/elementwise.h"
#include "kernels/common/search.h"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

template <class T>
__global__ void search_rows(const T *rows, const T *x, int64_t *out, int64_t length, int64_t count,
                            Split per_row, bool right)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = kernels::sorted_place<T>(rows + per_row.quotient(i) * length, length, x[i], right);
}

// Operands: sorted rows, x and the result, all row-major. A single row serves every element of x.
YOKE_KERNEL(_searchsorted)
{
    const yoke_operand &rows = launch->operands[0], &x = launch->operands[1],
                       &out = launch->operands[2];
    const bool right = launch->params[0].v.i != 0;
    const int64_t per_row = rows.ndim == 1 ? x.numel : x.shape[x.ndim - 1];
    const int threads = block_size(kThreads);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        return start(launch, search_rows<T>, {blocks_for(launch, x.numel, threads), threads},
                     data_of<T>(rows), data_of<T>(x), data_of<int64_t>(out),
                     rows.shape[rows.ndim - 1], x.numel, Split(per_row, x.numel), right);
    });
}

YOKE_CUDA_END
