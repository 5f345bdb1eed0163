// Declarations for the files of the fake libcublasLt: contents of opaque structs, products, refusals. See fake.h.
#pragma once

#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <cstring>

#include "tests/fakes/cuda/beside_driver.h"

namespace yoke::fake {

constexpr uint32_t kDescription = 0xdec0de01, kLayout = 0xdec0de02, kPreference = 0xdec0de03,
                   kAlgorithm = 0xdec0de04;

// Contents of the opaque structs in this fake.
struct Description {
    uint32_t magic;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t transposed[2];
    uint32_t epilogue;
    void *bias;  // or, of a gradient of the bias, the output
    void *aux;
    int64_t aux_leading, aux_step;
};
struct Layout {
    uint32_t magic;
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t leading, step;
    int32_t batch;
};
struct Preference {
    uint32_t magic, alignment[4], reductions;
    uint64_t workspace;
};
struct Algorithm {
    uint32_t magic, number, alignment[4];
    uint64_t problem, workspace;
};
static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

// Says on stderr why.
__attribute__((format(printf, 1, 2))) cublasStatus_t refuse(const char *format, ...);

// Returns the major number of the current device's compute capability.
int major_of_device();

#define FAULT()                                                 \
    do {                                                        \
        const int fault_ = fault_of(__func__);                  \
        if (fault_) return static_cast<cublasStatus_t>(fault_); \
    } while (0)

struct Problem {
    Description product;
    Layout a, b, c, d;
    uint64_t rows, columns, inner;

    // Tells problems apart, so an algorithm is used for its own problem only.
    uint64_t hash() const
    {
        uint64_t h = product.epilogue | (uint64_t)product.compute << 32;
        for (const Layout *x : {&a, &b, &d})
            for (const uint64_t word : {x->rows, x->columns, (uint64_t)x->leading,
                                        (uint64_t)x->step, (uint64_t)x->batch, (uint64_t)x->type})
                h = (h ^ word) * 0x9e3779b97f4a7c15u;
        return h;
    }
};

inline bool has_bias(const Description &product)
{
    return product.epilogue & CUBLASLT_EPILOGUE_BIAS;
}

// Returns whether the epilogue sums the rows of op(A), or the columns of op(B).
inline bool has_sums(const Description &product)
{
    return product.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
           product.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

inline bool has_aux(const Description &product)
{
    return product.epilogue & 128;
}

template <class Mine, class Theirs>
Mine read(const Theirs *opaque)
{
    Mine mine{};
    if (opaque) memcpy(&mine, opaque, sizeof mine);
    return mine;
}

// Fills a problem in, or refuses a call that CUDA's library would refuse.
cublasStatus_t read_problem(Problem &p, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                            cublasLtMatrixLayout_t d);

struct Work {
    Problem problem;
    const void *a, *b;
    void *d, *workspace;
    uint64_t workspace_bytes;
    int microseconds;  // length of the product
    bool adds;         // D += op(A) op(B)
};

// Run and drop a Work, as functions for the fake runtime.
int do_work(void *context);
void drop_work(void *context);

}  // namespace yoke::fake
