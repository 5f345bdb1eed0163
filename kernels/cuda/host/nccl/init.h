// Making of a communicator: what its ranks must have in common, then NCCL's own rendezvous.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// 128 bytes of NCCL's own, by which the ranks find the one that made them.
yoke_status draw_id(void *id, double timeout_s);

// Waits for the other ranks for no longer than the member's time.
yoke_status make(const yoke_comm_member &member, Comm **out);

}  // namespace yoke::cuda::nccl
