// Products through oneDNN: strides as they are where it takes them, bias fused.
#include "kernels/cpu/gemm.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "kernels/cpu/gemm_cache.h"

namespace yoke::cpu {

void limit_onednn(const char *isa)
{
    if (strcmp(isa, "base") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (strcmp(isa, "v3") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    if (strcmp(isa, "v4") == 0) dnnl_set_max_cpu_isa(dnnl_cpu_isa_all);
}

void describe_onednn(char *text, size_t bytes)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, bytes, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

bool onednn_has_bf16()
{
    constexpr unsigned kBf16 = dnnl_cpu_isa_avx512_core_bf16;
    return (dnnl_get_effective_cpu_isa() & kBf16) == kBf16;
}

// Strides that oneDNN takes: one axis dense, the other at least as far apart as the dense one is long. An axis of
// length 1 has no stride of its own and gets one that fits.
static bool normalise(const Matrix &matrix, int64_t batch, int64_t rows, int64_t columns,
                      int64_t *out)
{
    int64_t row = matrix.row_stride, column = matrix.column_stride;
    if (columns == 1) column = 1;
    if (rows == 1) row = column == 1 ? columns : 1;
    bool row_major = column == 1 && row >= columns;
    bool column_major = row == 1 && column >= rows;
    if (!row_major && !column_major) return false;
    out[0] = batch > 1 ? matrix.batch_stride : 0;
    out[1] = row;
    out[2] = column;
    return out[0] >= 0;
}

static yoke_status fail_onednn(dnnl_status_t status, const Product &product)
{
    yoke_status code = status == dnnl_out_of_memory ? YOKE_E_OOM : YOKE_E_INTERNAL;
    return fail(code, "oneDNN failed (status %d) on a product of %lld x %lld by %lld x %lld",
                (int)status, (long long)product.m, (long long)product.k, (long long)product.k,
                (long long)product.n);
}

static yoke_status execute(GemmEntry *entry, const Product &product)
{
    dnnl_memory_set_data_handle(entry->a, product.a.data);
    dnnl_memory_set_data_handle(entry->b, product.b.data);
    dnnl_memory_set_data_handle(entry->c, product.c.data);
    dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, entry->a},
                               {DNNL_ARG_WEIGHTS, entry->b},
                               {DNNL_ARG_DST, entry->c},
                               {DNNL_ARG_BIAS, entry->bias}};
    if (entry->bias) dnnl_memory_set_data_handle(entry->bias, const_cast<void *>(product.bias));
    dnnl_status_t status =
        dnnl_primitive_execute(entry->primitive, gemm_stream(), entry->bias ? 4 : 3, args);
    return status == dnnl_success ? YOKE_OK : fail_onednn(status, product);
}

yoke_status gemm_onednn(const Product &product, bool *done)
{
    *done = false;
    if (product.dtype != YOKE_F32 && product.dtype != YOKE_BF16) return YOKE_OK;
    GemmKey key = {};
    key.batch = product.batch;
    key.m = product.m;
    key.n = product.n;
    key.k = product.k;
    key.dtype = product.dtype;
    key.bias = product.bias != nullptr;
    if (!normalise(product.a, key.batch, key.m, key.k, key.a) ||
        !normalise(product.b, key.batch, key.k, key.n, key.b) ||
        !normalise(product.c, key.batch, key.m, key.n, key.c) || key.c[2] != 1)
        return YOKE_OK;
    key.threads = team_size();
    set_team(key.threads);
    try {
        GemmEntry *entry = nullptr;
        dnnl_status_t status = find_gemm(key, &entry);
        if (status != dnnl_success) return fail_onednn(status, product);
        if (!entry->primitive) return YOKE_OK;
        *done = true;
        return execute(entry, product);
    } catch (const std::bad_alloc &) {
        return fail(YOKE_E_OOM,
                    "oneDNN found no memory for a product of %lld x %lld by %lld x %lld",
                    (long long)key.m, (long long)key.k, (long long)key.k, (long long)key.n);
    }
}

}  // namespace yoke::cpu
