// Matrix products: what the shapes of matmul and linear come down to, and oneDNN's way to compute them.
#pragma once

#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

// `batch` matrices; strides in elements, of any value.
struct Matrix {
    void *data;
    int64_t batch_stride, row_stride, column_stride;
};

// c[i] = a[i] b[i] + bias for each i of the batch; a is m x k, b is k x n, bias has n elements or is null. All are of
// one dtype; c does not overlap the rest.
struct Product {
    yoke_dtype dtype;
    int64_t batch, m, n, k;
    Matrix a, b, c;
    const void *bias;
};

// Computes the product through oneDNN. *done is false, with YOKE_OK and nothing written, where oneDNN does not take
// its dtype or strides; the caller's own loops take everything.
yoke_status gemm_onednn(const Product &product, bool *done);

// Holds oneDNN to the instruction set that YOKE_CPU_ISA asks for; before its first use.
void limit_onednn(const char *isa);

// "oneDNN 2.6.3", or that the build has none.
void describe_onednn(char *text, size_t bytes);

// Whether it multiplies bf16 by instructions made for that; a user may have held it below what the processor has.
bool onednn_has_bf16();

}  // namespace yoke::cpu
