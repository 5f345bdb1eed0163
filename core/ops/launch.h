// launch.h: from a call's tensors to the record that a kernel gets, and from there to the device.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"
#include "core/tensor/tensor.h"

#include <span>

namespace yoke {

// Describes a tensor (null: an absent tensor) to the device; returns its bytes. Each operand of each call passes
// here: a single copy of the code is faster than a copy at each use.
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

// Gives a launch to its device, or to the thread's captured graph. `storages` are the storages of the operands, null
// for an operand without storage. Raises a kernel's error in the name of `called`, the op as called.
// `is_placed`: each replay of the graph draws the same numbers.
void issue(const OpDef &called, yoke_launch &record, Device &device,
           std::span<Storage *const> storages, bool is_placed = false);

// Raises the error of a failed kernel, under an op name known to scripts (names.cpp).
[[noreturn]] void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device);

}  // namespace yoke
