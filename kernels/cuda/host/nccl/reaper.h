// End of a communicator, in a thread of its own, since NCCL may take long over it or never come back.
//
// Contract
//  * Each communicator has a thread of its own: NCCL can only end several after another where all ranks begin at once.
//  * Its memory is freed when the work on it has ended that the streams still had, also where it was aborted.
//  * What does not end is left behind for the life of the process: its thread, its handle and its memory.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Starts the thread, once for a communicator. A communicator whose work is done is finalized and destroyed, once its
// peers do the same; one that was aborted, fails or takes longer than its patience is aborted. Returns at once.
void reap(Comm &comm);

// Lets go of the core's handle: no call comes any more. The stream of the last one must live until this returns. Waits
// for nothing.
void dispose(Comm &comm);

// Starts a detached thread that takes none of the host's signals; returns whether there is one.
bool start_detached(void *(*run)(void *), void *argument);

}  // namespace yoke::cuda::nccl
