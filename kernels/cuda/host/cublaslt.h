// Matrix products through cuBLASLt, which is found at a device's first product or capture and never unloaded.
//
// Contract
//  * Computes f64 in f64, f32 in f32 (in TF32 where the launch's flags allow it), f16 and bf16 in f32.
//  * Inside the context of its device, on the launch's stream, without waiting for it (but see cublaslt_tune.h).
//  * Where the library is missing or of another major version, products fail with YOKE_E_UNAVAILABLE and every place
//    that was tried; nothing else does.
#pragma once

#include "kernels/common/named.h"
#include "kernels/common/product.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

using kernels::Activation;
using kernels::Matrix;
using kernels::Product;

struct Gemm {
    Product product;
    Activation activation = Activation::kNone;  // of the product plus bias, before it is stored
    void *before = nullptr;  // where the activation's argument is kept; strides are those of c
};

// *done is false, with YOKE_OK and nothing written but parts of the result, where cuBLASLt has no algorithm that does
// all of it at once. Batches of any number are taken.
// Strides are such as cublaslt_takes; c is row-major where there is more to do than the product.
yoke_status cublaslt_multiply(const yoke_launch *launch, const Gemm &gemm, bool *done);

// Whether a matrix of a batch is one that cuBLASLt reads: one axis dense, the other at least as far apart as the dense
// one is long, batches one behind the other or all in one place.
bool cublaslt_takes(const Matrix &matrix, int64_t rows, int64_t columns);

// Before a stream is captured: makes the device's handle and, where none was made yet, a small product on the default
// stream. For what cuBLASLt does but once it may wait for the device, which no capture outlives.
// YOKE_OK too where the library is missing, which is for a product to tell.
yoke_status cublaslt_prepare(Device &device);

// Gives the device's handle back; its next product makes another. When the device closes.
void cublaslt_close(const Device &device);

}  // namespace yoke::cuda
