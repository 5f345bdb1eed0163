// oneDNN primitives that are ready to run, found by the shape of a product.
//
// Contract: a cache belongs to one thread, so there is no lock, and a primitive with its memory objects is never used
// by two threads at once (oneDNN's own scratchpads are per thread too). It is made at a thread's first product and goes
// with the thread. All its functions are called where a OneThread lives. Looking up an entry costs a hash and a
// comparison or two; making one some 100 microseconds.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

// What a primitive is made for. No padding, so that it can be hashed and compared as bytes.
struct GemmKey {
    int64_t batch, m, n, k;
    int64_t a[3], b[3], c[3];  // strides: batch, row, column
    int32_t dtype, bias;
};

struct GemmEntry {
    GemmKey key;
    uint64_t used;               // when, for eviction; 0: empty
    dnnl_primitive_t primitive;  // null: oneDNN cannot do it
    dnnl_memory_t a, b, c, bias;
    bool settled;  // it was run: what oneDNN makes at that is made
};

// The calling thread's entry for the key, made if need be. What oneDNN cannot do is an entry without a primitive;
// any other failure is returned and leaves no entry behind.
dnnl_status_t find_gemm(const GemmKey &key, GemmEntry **out);

// The calling thread's stream of oneDNN; after find_gemm.
dnnl_stream_t gemm_stream();

// Computes a product in the calling thread, with what stands here. *done is false where oneDNN cannot do it; `product`
// has strides that it takes.
dnnl_status_t compute_alone(const Product &product, bool *done);

// Keeps oneDNN to the calling thread while it lives, and then gives the program its own number of OpenMP threads back.
class OneThread {
public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread &) = delete;
    OneThread &operator=(const OneThread &) = delete;
    // dnnl_out_of_memory: there was none for that, and oneDNN must not be called.
    dnnl_status_t status() const { return status_; }

private:
    int before_;
    dnnl_status_t status_ = dnnl_success;
};

}  // namespace yoke::cpu
