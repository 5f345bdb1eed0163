// Convolutions as oneDNN's primitives, ready to run. Each thread has a cache of such primitives (onednn_cache.h).
//
// Contract
//  * Pixels lie NHWC. The weight lies in oneDNN's own layout: a weight is packed before it is read, and a gradient by
//    weight is packed first and then goes to the caller's layout. For bf16, the packed gradient by weight is float.
//    The sums of a gradient by data are float, too, if a bias is added to the sums.
//  * An implementation named "ref..." is never taken. With a plain weight beside NHWC, oneDNN would choose such an
//    implementation.
#pragma once

#include "kernels/cpu/conv.h"
#include "kernels/cpu/onednn_thread.h"

namespace yoke::cpu {

// Key of a primitive. It has no padding, so it can be hashed and compared as bytes.
struct ConvKey {
    int64_t kind, dtype, bias, wide;  // wide: x is written as float
    int64_t n, c, h, w, o, oh, ow, kh, kw;
    int64_t stride[2], padding[2], dilation[2], groups;

    explicit ConvKey(const Conv &conv);
    ConvKey() = default;
    uint64_t room() const
    {
        return static_cast<uint64_t>(o * (c / groups) * kh * kw) * sizeof(float);
    }
};

// Separately packed piece of the weight.
struct Pack {
    dnnl_primitive_t reorder;
    dnnl_memory_t weight, packed;
};
constexpr int kMostPacks = 4;

struct ConvEntry {
    ConvKey key;
    uint64_t used;               // when, for eviction; 0: empty
    dnnl_primitive_t primitive;  // null: oneDNN cannot do it, or not fast
    Pack packs[kMostPacks];
    int64_t pack_count;  // 0: packed is as the caller's
    dnnl_memory_t x, packed, out, bias, scratchpad;
    uint64_t packed_bytes, scratchpad_bytes;
    bool settled;  // has run once, so oneDNN's lazy setup is done

    void clear();
    dnnl_status_t make(const ConvKey &wanted);

    bool packs_like(const ConvEntry &other) const;
    // Copies the caller's weight to oneDNN's layout, or the gradient by weight from this layout to the caller: a
    // piece, or all pieces.
    dnnl_status_t pack(void *weight, void *to, int64_t piece) const;
    dnnl_status_t pack(void *weight, void *to) const;
    // Runs the primitive on the operands of a convolution and the packed weight. `pad` has scratchpad_bytes.
    dnnl_status_t run(const Conv &conv, void *weight, void *pad);
};

}  // namespace yoke::cpu
