// Creation of a communicator: first a check of the ranks' common properties, then NCCL's rendezvous.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Writes NCCL's 128 bytes, by which ranks find the rank that made them.
yoke_status draw_id(void *id, double timeout_s);

// Waits for the other ranks for no longer than the member's time.
yoke_status make(const yoke_comm_member &member, Comm **out);

}  // namespace yoke::cuda::nccl
