// Products cut along their depth. The parts are added up.
#include "kernels/cpu/gemm_deep.h"

#include <algorithm>

#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// Depth of a part. A product is cut if its depth is more than twice this depth, because a cut into few parts costs
// little.
constexpr int64_t kVectorDepth = 8192, kMatrixDepth = 65536;

static int64_t part_depth(const Product &p)
{
    return p.m == 1 || p.n == 1 ? kVectorDepth : kMatrixDepth;
}

bool is_too_deep(const Product &product)
{
    return product.dtype == YOKE_F32 && product.k > 2 * part_depth(product);
}

// Adds a part, which has no gaps, to the result.
static void add_part(const Product &p, const float *part)
{
    const int64_t share = std::max<int64_t>(1, (1 << 15) / p.n), rows = p.batch * p.m;
    run_parts((rows + share - 1) / share, INT32_MAX, [&](int64_t i, int) {
        for (int64_t row = i * share; row < std::min(rows, (i + 1) * share); row++) {
            float *to = static_cast<float *>(p.c.data) + row / p.m * p.c.batch_stride +
                        row % p.m * p.c.row_stride;
            const float *from = part + row * p.n;
            for (int64_t j = 0; j < p.n; j++) to[j] += from[j];
        }
    });
}

yoke_status compute_deep(const yoke_launch *launch, const Product &product, ComputeProduct compute,
                         bool *done)
{
    const int64_t depth = part_depth(product);
    Scratch scratch(launch);
    if (yoke_status status =
            scratch.reserve((uint64_t)(product.batch * product.m * product.n) * sizeof(float)))
        return status;
    for (int64_t first = 0; first < product.k; first += depth) {
        Product part = product;
        part.k = std::min(depth, product.k - first);
        part.a.data = static_cast<float *>(product.a.data) + first * product.a.column_stride;
        part.b.data = static_cast<float *>(product.b.data) + first * product.b.row_stride;
        if (first > 0) {
            part.bias = nullptr;
            part.c = {scratch.data(), product.m * product.n, product.n, 1};
            if (product.batch == 1) part.c.batch_stride = 0;
        }
        if (yoke_status status = compute(launch, part, done)) return status;
        if (!*done) return YOKE_OK;  // the remaining parts fail alike
        if (first > 0) add_part(product, scratch.as<float>());
    }
    return YOKE_OK;
}

}  // namespace yoke::cpu
