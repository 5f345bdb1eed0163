// Descriptions of products for the fake libcublasLt: creation, and refusals.
#include <cstdlib>

#include "tests/fakes/cuda/cublaslt_fake.h"

namespace yoke::fake {
namespace {

cublasStatus_t check_layout(const Layout &x, const char *name)
{
    if (x.magic != kLayout) return refuse("%s has no layout", name);
    if (x.rows == 0 || x.columns == 0) return refuse("%s is empty", name);
    if (x.leading < static_cast<int64_t>(x.rows))
        return refuse("%s has %llu rows and a leading dimension of %lld", name,
                      (unsigned long long)x.rows, (long long)x.leading);
    if (x.batch < 1 || x.step < 0) return refuse("%s has a batch of %d", name, x.batch);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_types(const Problem &p)
{
    const cudaDataType_t type = p.a.type;
    const bool is_double = type == CUDA_R_64F, is_half = type == CUDA_R_16F || type == CUDA_R_16BF;
    if (type == CUDA_R_16BF && major_of_device() < 8) return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool computes = is_double ? p.product.compute == CUBLAS_COMPUTE_64F
                          : p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32
                              ? type == CUDA_R_32F
                              : p.product.compute == CUBLAS_COMPUTE_32F;
    if (!computes || p.product.scale != (is_double ? CUDA_R_64F : CUDA_R_32F))
        return refuse("a computing type that does not go with the data");
    const bool is_wide = is_half && p.d.type == CUDA_R_32F;
    if (p.b.type != type || p.c.type != p.d.type || (p.d.type != type && !is_wide))
        return refuse("matrices of several types");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_epilogue(const Problem &p)
{
    const Description &product = p.product;
    if ((has_bias(product) || has_sums(product)) && !product.bias)
        return refuse("an epilogue without its bias");
    if (has_sums(product) && p.d.batch > 1) return refuse("sums of a batch without their step");
    if (has_aux(product) && (!product.aux || product.aux_leading < static_cast<int64_t>(p.rows)))
        return refuse("an epilogue without its second output");
    switch (product.epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
            return CUBLAS_STATUS_SUCCESS;
        case CUBLASLT_EPILOGUE_RELU:
        case CUBLASLT_EPILOGUE_BIAS:
        case CUBLASLT_EPILOGUE_RELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
            break;
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
            if (product.aux_leading % 8) return refuse("a second output in odd rows");
            break;
        case CUBLASLT_EPILOGUE_BGRADA:
        case CUBLASLT_EPILOGUE_BGRADB:
            if (getenv("FAKE_CUBLASLT_NO_SUMS")) return CUBLAS_STATUS_NOT_SUPPORTED;
            break;
        default:
            return refuse("an epilogue that this fake has not");
    }
    return p.d.type == CUDA_R_64F ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(T &field, const void *value, size_t size)
{
    if (!value || size != sizeof field) return refuse("an attribute of %zu bytes", size);
    memcpy(&field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t read_problem(Problem &p, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                            cublasLtMatrixLayout_t d)
{
    p.product = read<Description>(product);
    p.a = read<Layout>(a), p.b = read<Layout>(b), p.c = read<Layout>(c), p.d = read<Layout>(d);
    if (p.product.magic != kDescription) return refuse("no description of the product");
    const char *const names[] = {"A", "B", "C", "D"};
    const Layout *const layouts[] = {&p.a, &p.b, &p.c, &p.d};
    for (int i = 0; i < 4; ++i) {
        if (const cublasStatus_t status = check_layout(*layouts[i], names[i])) return status;
        if (layouts[i]->batch != p.d.batch) return refuse("batches of several lengths");
        if (layouts[i]->batch > 65535) return refuse("more batches than a grid has blocks along z");
    }
    const bool ta = p.product.transposed[0] == CUBLAS_OP_T,
               tb = p.product.transposed[1] == CUBLAS_OP_T;
    p.rows = ta ? p.a.columns : p.a.rows;
    p.inner = ta ? p.a.rows : p.a.columns;
    p.columns = tb ? p.b.rows : p.b.columns;
    if ((tb ? p.b.columns : p.b.rows) != p.inner || p.d.rows != p.rows ||
        p.d.columns != p.columns || p.c.rows != p.rows || p.c.columns != p.columns)
        return refuse("matrices whose sizes do not agree");
    if (p.d.batch > 1 && p.d.step < p.d.leading * static_cast<int64_t>(p.columns - 1) + 1)
        return refuse("results of a batch that overlap");
    if (const cublasStatus_t status = check_types(p)) return status;
    return check_epilogue(p);
}

}  // namespace yoke::fake

using namespace yoke::fake;

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    FAULT();
    if (size != sizeof *layout) return CUBLAS_STATUS_ALLOC_FAILED;
    const Layout made{kLayout, type, rows, cols, ld, 0, 1};
    memcpy(layout, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size)
{
    FAULT();
    Layout &mine = *reinterpret_cast<Layout *>(layout);
    if (mine.magic != kLayout) return refuse("an attribute of what is no layout");
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(mine.batch, value, size);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return set(mine.step, value, size);
    return refuse("an attribute of a layout that this fake has not");
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    FAULT();
    if (size != sizeof *product) return CUBLAS_STATUS_ALLOC_FAILED;
    Description made{};
    made.magic = kDescription;
    made.compute = compute;
    made.scale = scale;
    made.transposed[0] = made.transposed[1] = CUBLAS_OP_N;
    made.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    memcpy(product, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    FAULT();
    Description &mine = *reinterpret_cast<Description *>(product);
    if (mine.magic != kDescription) return refuse("an attribute of what is no description");
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return set(mine.transposed[0], value, size);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return set(mine.transposed[1], value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return set(mine.epilogue, value, size);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return set(mine.bias, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
            return set(mine.aux, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
            return set(mine.aux_leading, value, size);
        case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
            return set(mine.aux_step, value, size);
        default:
            return refuse("an attribute of a description that this fake has not");
    }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t size)
{
    FAULT();
    if (size != sizeof *preference) return CUBLAS_STATUS_ALLOC_FAILED;
    const Preference made{kPreference, {256, 256, 256, 256}, 7, 0};
    memcpy(preference, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    FAULT();
    Preference &mine = *reinterpret_cast<Preference *>(preference);
    if (mine.magic != kPreference) return refuse("an attribute of what is no preference");
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return set(mine.workspace, value, size);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return set(mine.reductions, value, size);
    const int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (which >= 0 && which < 4) return set(mine.alignment[which], value, size);
    return refuse("an attribute of a preference that this fake has not");
}
