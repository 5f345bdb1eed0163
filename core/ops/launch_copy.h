// launch_copy.h: a launch with copies of all that its record points to, in one block of memory: what a graph, or the
// log of a checkpoint scope, keeps of a call in order to make it again.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"

#include <cstddef>

namespace yoke {

// The bytes that copy_launch fills.
size_t launch_copy_bytes(const yoke_launch &from) noexcept;
// The copy, at the beginning of `block`, which is aligned to 16 bytes. Scalars and empty tensors among its operands
// point into the copy, as they do in the original.
yoke_launch *copy_launch(const yoke_launch &from, void *block) noexcept;

// The place of the parameter `offset` of an op that draws random numbers, or -1.
int offset_param(const OpDef &op) noexcept;

}  // namespace yoke
