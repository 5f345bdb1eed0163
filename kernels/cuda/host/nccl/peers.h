// Agreement of a new communicator's ranks, before NCCL is called. If two ranks used the same card or different
// versions, NCCL would hang, or fail without naming a rank.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Fails alike on all ranks and names the faulty rank. `own` is this rank's failure, or YOKE_OK. `device` is null if
// the device is at fault. Without all_gather, returns `own`.
yoke_status agree(const yoke_comm_member &member, const Device *device, yoke_status own);

}  // namespace yoke::cuda::nccl
