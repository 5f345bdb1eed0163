// Ops whose work is one copy: the same kernels for every backend.
//
// Contract: a file of a backend has YOKE_KERNEL and copy_operand(launch, to, from), and says YOKE_COPY_KERNELS once.
#pragma once

// Defines the kernel of an op that copies operand number `from` to operand number `to`.
#define YOKE_COPY_KERNEL(op, to, from)                                             \
    YOKE_KERNEL(op)                                                                \
    {                                                                              \
        return copy_operand(launch, launch->operands[to], launch->operands[from]); \
    }

#define YOKE_COPY_KERNELS         \
    YOKE_COPY_KERNEL(cast, 1, 0)  \
    YOKE_COPY_KERNEL(clone, 1, 0) \
    YOKE_COPY_KERNEL(copy_, 0, 1)
