// End of a communicator, in a separate thread, because NCCL may take long or never return.
//
// Contract
//  * Each communicator has its own thread: NCCL can end several communicators in sequence only if all ranks begin at
//    once.
//  * The memory is freed after the streams' remaining work has ended, also after an abort.
//  * If a step does not end, the thread, the handle and the memory are left behind until the process ends.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Starts the thread, once for a communicator. A communicator without work is finalized and destroyed, once its peers
// do the same. A communicator that was aborted, fails or exceeds its timeout is aborted. Returns at once.
void reap(Comm &comm);

// Releases the core's handle: no call follows. The stream of the last call must live until this returns. Does not
// wait.
void dispose(Comm &comm);

// Starts a detached thread with the host program's signals blocked. Returns whether the thread was started.
bool start_detached(void *(*run)(void *), void *argument);

}  // namespace yoke::cuda::nccl
