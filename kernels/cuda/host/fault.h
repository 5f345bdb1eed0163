// What kernels tell the host of wrong values they met: an index out of range above all. Such a kernel touches nothing
// beyond its operands, goes on, and leaves a note in pinned memory that the next synchronising call turns into an
// error.
#pragma once

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// One note for each device: the first is kept until it has been told.
struct Fault {
    int32_t claimed;  // by the thread that writes it
    int32_t ready;    // written whole
    int32_t op;
    yoke_status status;
    const char
        *format;  // of the host, static: "%s: index[%lld] is %lld, beyond an axis of length %lld"
    int64_t position, value, bound;
    int32_t ndim;  // of the operand that the position counts in, by `shape`; -1: not told
    int64_t shape[YOKE_MAX_NDIM];
};

// Pinned and visible to the device; null where none could be had.
yoke_status make_fault(const Scope &scope);
void drop_fault(Device &device);

// YOKE_OK, or the note as an error, which is then forgotten.
yoke_status take_fault(const Scope &scope);

// For kernels' arguments: where to leave a note, and what it says.
struct Reporter {
    Fault *fault;
    int32_t op;
    yoke_status status;
    const char
        *format;  // takes the op's name, position, value, bound and bound - 1, or the first of them
    int32_t ndim = -1;
    int64_t shape[YOKE_MAX_NDIM] = {};
};

inline Reporter reporter(const yoke_launch *launch, const char *format,
                         yoke_status status = YOKE_E_INDEX)
{
    return {static_cast<const Device *>(launch->device)->fault, launch->op, status, format};
}

// Of an element of `operand`, by its row-major number. The format takes, by number, the op's name (1, without a leading
// "_"), "[1, 2]" for the place of the element ("" where there are no axes; 2), value (3), bound (4), bound - 1 (5).
inline Reporter reporter(const yoke_launch *launch, const char *format, const yoke_operand &operand)
{
    Reporter to = reporter(launch, format);
    to.ndim = operand.ndim;
    for (int axis = 0; axis < operand.ndim; axis++) to.shape[axis] = operand.shape[axis];
    return to;
}

#if defined(__CUDACC__) || defined(YOKE_EMULATED)
__device__ inline void report(const Reporter &to, int64_t position, int64_t value, int64_t bound)
{
    if (!to.fault || atomicCAS(&to.fault->claimed, 0, 1) != 0) return;
    to.fault->op = to.op;
    to.fault->status = to.status;
    to.fault->format = to.format;
    to.fault->position = position;
    to.fault->value = value;
    to.fault->bound = bound;
    to.fault->ndim = to.ndim;
    for (int axis = 0; axis < to.ndim; axis++) to.fault->shape[axis] = to.shape[axis];
    __threadfence_system();
    *(volatile int32_t *)&to.fault->ready = 1;
}
#endif

}  // namespace yoke::cuda
