// Kernels' reports of wrong values, mostly an index out of range. Such a kernel accesses only its operands and goes
// on. It leaves a note in pinned memory, and the next synchronising call turns the note into an error.
#pragma once

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// Note of a device: the first note stays until it has been reported.
struct Fault {
    int32_t claimed;  // by the writing thread
    int32_t ready;    // written whole
    int32_t op;
    yoke_status status;
    const char
        *format;  // static host text: "%s: index[%lld] is %lld, beyond an axis of length %lld"
    int64_t position, value, bound;
    int32_t ndim;  // axes of the operand of the position, with `shape`; -1: unknown
    int64_t shape[YOKE_MAX_NDIM];
};

// Makes the device's place for a note, in pinned memory visible to all devices. On failure the place stays null.
yoke_status make_fault(const Scope &scope);
void drop_fault(Device &device);

// Returns YOKE_OK if there is no note. Else reports the note as an error and forgets it.
yoke_status take_fault(const Scope &scope);

// Argument of kernels: the place and the text of a note.
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

// Makes a reporter for an element of `operand`, by its row-major number. The format's arguments, by number, are the
// op's name (1, without a leading "_"), "[1, 2]" for the element's place ("" without axes; 2), value (3), bound (4),
// bound - 1 (5).
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
