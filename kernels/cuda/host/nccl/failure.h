// Failures of the engine "nccl": the function, the device and rank, and NCCL's text.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Place of a failure, for messages: "all_reduce: cuda:0, rank 1 of 2: …".
struct Place {
    const char *call;
    Device *device;
    int rank, size;
    void *stream = nullptr;
};

Place place_of(const Comm &comm, const char *call, void *stream = nullptr);

void clear(yoke_comm_fault *fault);

yoke_status fail_at(const Place &place, yoke_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Reports that `function` failed, in the context of the device, with NCCL's text for `handle` (may be null). Returns
// the status of NCCL's result; a lost device is reported as lost.
yoke_status fail_nccl(const Place &place, ncclComm_t handle, ncclResult_t result,
                      const char *function);

// Reports how an unfinished wait ended, notes it in `fault` (may be null), and returns the failure. Returns YOKE_OK
// for kDone.
yoke_status fail_wait(const Place &place, ncclComm_t handle, const Outcome &outcome,
                      const char *function, yoke_comm_fault *fault);

// Logs a warning if no caller is left to get the failure.
void warn_at(const Place &place, const char *format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace yoke::cuda::nccl
