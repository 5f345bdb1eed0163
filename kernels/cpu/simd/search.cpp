// _searchsorted: places in sorted rows.
#include "kernels/common/search.h"
#include "kernels/common/elementwise.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

constexpr int64_t kSearchGrain = 2048;

// Operands: sorted rows, x and the result, all row-major. A single row serves every element of x.
YOKE_KERNEL(_searchsorted)
{
    const yoke_operand &rows = launch->operands[0], &x = launch->operands[1],
                       &out = launch->operands[2];
    const bool right = launch->params[0].v.i != 0;
    const int64_t length = rows.shape[rows.ndim - 1];
    const int64_t per_row = rows.ndim == 1 ? x.numel : x.shape[x.ndim - 1];
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        parallel_range(x.numel, kSearchGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                data_of<int64_t>(out)[i] = kernels::sorted_place<T>(
                    data_of<T>(rows) + i / per_row * length, length, data_of<T>(x)[i], right);
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
