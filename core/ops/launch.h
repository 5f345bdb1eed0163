// launch.h: from a call's tensors to the record that a kernel gets, and from there to the device.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"
#include "core/tensor/tensor.h"

#include <span>

namespace yoke {

// Describes a tensor (null: an absent one) to the device; returns the bytes that it takes. Each operand of each call
// passes here: one copy of the code is faster than a copy at each use.
__attribute__((noinline)) inline uint64_t describe_operand(yoke_operand &o, const yoke_tensor *x,
                                                           uint32_t access)
{
    if (!x) {
        o = {};
        return 0;
    }
    const ByteRange range = byte_range(*x);
    // An empty tensor has no memory; kernels still step through its strides, and may not step from null.
    o.data = x->data ? x->data : static_cast<void *>(&o);
    o.shape = x->shape_;
    o.strides = x->strides_;
    o.numel = x->numel;
    o.ndim = x->ndim;
    o.dtype = x->dtype;
    o.flags = access | (x->contiguous ? YOKE_OPERAND_CONTIGUOUS : 0);
    o.reserved = 0;
    o.begin = range.begin;
    o.bytes = range.bytes;
    o.immediate = 0;
    return range.bytes;
}

// Gives a launch to its device, or to the graph that the thread captures. The storages are those of its operands, null
// where one has none. Raises what the kernel says of `called`, the op as it was called.
// `is_placed`: what it draws is the same in each replay of the graph.
void issue(const OpDef &called, yoke_launch &record, Device &device,
           std::span<Storage *const> storages, bool is_placed = false);

// A kernel of the op has failed: raises what it said, in a name that a script knows (names.cpp).
[[noreturn]] void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device);

}  // namespace yoke
