// Product computed by the calling thread.
#include "kernels/cpu/gemm_cache.h"
#include "kernels/cpu/onednn_cache.h"

namespace yoke::cpu {

static dnnl_status_t execute(const GemmEntry &entry, const Product &product)
{
    dnnl_memory_set_data_handle(entry.a, product.a.data);
    dnnl_memory_set_data_handle(entry.b, product.b.data);
    dnnl_memory_set_data_handle(entry.c, product.c.data);
    dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, entry.a},
                               {DNNL_ARG_WEIGHTS, entry.b},
                               {DNNL_ARG_DST, entry.c},
                               {DNNL_ARG_BIAS, entry.bias}};
    if (entry.bias) dnnl_memory_set_data_handle(entry.bias, const_cast<void *>(product.bias));
    return dnnl_primitive_execute(entry.primitive, onednn_stream(), entry.bias ? 4 : 3, args);
}

static void put_strides(const Matrix &matrix, int64_t batch, int64_t *out)
{
    out[0] = batch > 1 ? matrix.batch_stride : 0;  // a part of a batch may be one matrix
    out[1] = matrix.row_stride;
    out[2] = matrix.column_stride;
}

dnnl_status_t compute_alone(const Product &product, bool *done)
{
    GemmKey key = {};
    key.batch = product.batch;
    key.m = product.m;
    key.n = product.n;
    key.k = product.k;
    key.dtype = product.dtype;
    key.bias = product.bias != nullptr;
    put_strides(product.a, product.batch, key.a);
    put_strides(product.b, product.batch, key.b);
    put_strides(product.c, product.batch, key.c);
    *done = false;
    const dnnl_status_t status = use_onednn<GemmEntry>(key, [&](GemmEntry &entry) {
        if (!entry.primitive) return dnnl_success;
        const dnnl_status_t ran = execute(entry, product);
        entry.settled = *done = true;
        return ran;
    });
    if (status) *done = false;
    return status;
}

// Runs the smallest product that uses oneDNN's normal kernels. A failure here occurs again at the first product, and
// is reported there.
void prepare_onednn()
{
    constexpr int64_t kSize = 32;
    static float zeros[2 * kSize * kSize], result[kSize * kSize];
    for (yoke_dtype dtype : {YOKE_F32, YOKE_BF16}) {
        if (dtype == YOKE_BF16 && !onednn_has_bf16()) continue;
        Product p = {};
        p.dtype = dtype;
        p.batch = 1;
        p.m = p.n = p.k = kSize;
        p.a = {zeros, 0, kSize, 1};
        p.b = {zeros + kSize * kSize, 0, kSize, 1};
        p.c = {result, 0, kSize, 1};
        bool done = false;
        compute_alone(p, &done);
    }
    end_preparation();
}

}  // namespace yoke::cpu
