// Matrix products through cuBLASLt. The library is found at a device's first product or capture, and is never
// unloaded.
//
// Contract
//  * Computes f64 in f64, f32 in f32 (in TF32 if the launch's flags allow it), f16 and bf16 in f32.
//  * Inside the context of its device, on the launch's stream, without waiting for the stream (but see
//    cublaslt_tune.h).
//  * If the library is missing or of another major version, products fail with YOKE_E_UNAVAILABLE and the list of
//    tried places. Other calls do not fail.
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
    Activation activation = Activation::kNone;  // applied to the sum with bias, before the store
    void *before = nullptr;    // output for the activation's argument, with the strides of c
    void *row_sums = nullptr;  // output for the sum of each row of a, of c's dtype
    bool wide = false;         // c is float32, though a and b are halves
    bool adds = false;         // the product is added to c
};

// Runs a product, a batch of any size, with bias and activation. If cuBLASLt has no algorithm for all steps at once,
// returns YOKE_OK with *done false; parts of the result may be written then, but not of a result that is added to. The
// operands must pass cublaslt_takes. With a bias, an activation or `before`, c must be row-major. Row sums are those of
// a single product, without bias and activation.
yoke_status cublaslt_multiply(const yoke_launch *launch, const Gemm &gemm, bool *done);

// Returns whether cuBLASLt can read a matrix of a batch. One axis is dense, and the other axis has a step at least as
// long as the dense axis. Batches follow each other, or are all in the same place.
bool cublaslt_takes(const Matrix &matrix, int64_t rows, int64_t columns);

// Prepares the device before a stream is captured: makes the device's handle and, if there was no product yet, runs a
// small product on the default stream. cuBLASLt's first call may wait for the device, which would break a capture.
// Returns YOKE_OK if the library is missing: the product itself reports this.
yoke_status cublaslt_prepare(Device &device);

// Destroys the device's handle and plans, when the device closes. The device's next product makes others.
void cublaslt_close(const Device &device);

}  // namespace yoke::cuda
