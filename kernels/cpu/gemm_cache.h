// Products as oneDNN's primitives, ready to run; each thread has a cache of them (onednn_cache.h).
#pragma once

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/onednn_thread.h"

namespace yoke::cpu {

// Key of a primitive, without padding, so the key can be hashed and compared as bytes.
struct GemmKey {
    int64_t batch, m, n, k;
    int64_t a[3], b[3], c[3];  // strides: batch, row, column
    int32_t dtype, bias;

    // Returns the bytes of the operands. The result counts as float, because oneDNN adds in float.
    uint64_t room() const
    {
        const int64_t size = dtype == YOKE_F32 ? 4 : 2;
        return static_cast<uint64_t>(batch * ((m * k + k * n) * size + m * n * 4));
    }
};

struct GemmEntry {
    GemmKey key;
    uint64_t used;               // when, for eviction; 0: empty
    dnnl_primitive_t primitive;  // null: oneDNN cannot do it
    dnnl_memory_t a, b, c, bias;
    bool settled;  // has run once, so oneDNN's lazy setup is done

    void clear();
    dnnl_status_t make(const GemmKey &wanted);
};

// Computes a product in the calling thread, with the primitives above. If oneDNN does not support the product, *done
// is false. oneDNN supports the strides of `product`.
dnnl_status_t compute_alone(const Product &product, bool *done);

}  // namespace yoke::cpu
