// Creation of a communicator: first a check of the ranks' common properties, then NCCL's rendezvous.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Gets a new id from NCCL and writes its 128 bytes. By the id, other ranks find the rank with this call. Fails with
// YOKE_E_TIMEOUT if NCCL does not return in time.
yoke_status draw_id(void *id, double timeout_s);

// Makes a communicator together with the other ranks. Waits for them no longer than the member's timeout.
yoke_status make(const yoke_comm_member &member, Comm **out);

}  // namespace yoke::cuda::nccl
