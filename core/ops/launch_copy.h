// launch_copy.h: a launch with copies of all data behind its record, in a single block of memory. A graph, or the log
// of a checkpoint scope, keeps such a copy to repeat the call.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"

#include <cstddef>

namespace yoke {

// Returns the number of bytes that copy_launch fills.
size_t launch_copy_bytes(const yoke_launch &from) noexcept;
// Returns the copy, at the beginning of `block`, which is aligned to 16 bytes. Scalars and empty tensors among the
// operands point into the copy, as in the original.
yoke_launch *copy_launch(const yoke_launch &from, void *block) noexcept;

// Returns the index of the parameter `offset` of an op that draws random numbers, or -1.
int offset_param(const OpDef &op) noexcept;

}  // namespace yoke
