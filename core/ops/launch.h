// launch.h: from a call's tensors to the record that a kernel gets, and from there to the device.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"
#include "core/tensor/tensor.h"

#include <span>

namespace yoke {

// The device's view of a tensor (null: an absent one); returns the bytes that it takes.
uint64_t describe_operand(yoke_operand &o, const yoke_tensor *x, uint32_t access);

// Gives a launch to its device, or to the graph that the thread captures. The storages are those of its operands, null
// where one has none. Raises what the kernel says of `called`, the op as it was called.
// `is_placed`: what it draws is the same in each replay of the graph.
void issue(const OpDef &called, yoke_launch &record, Device &device,
           std::span<Storage *const> storages, bool is_placed = false);

// A kernel of the op has failed: raises what it said, in a name that a script knows (names.cpp).
[[noreturn]] void raise_kernel_error(const OpDef &op, yoke_status status, const Device &device);

}  // namespace yoke
