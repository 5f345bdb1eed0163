// Agreement of a new communicator's ranks, before NCCL is called. If two ranks used the same card or different
// versions, NCCL would hang, or fail without naming a rank.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Exchanges the ranks' failures, NCCL versions and cards. If a rank has failed, versions differ, or two ranks use the
// same card, fails on all ranks and names the ranks. `own` is this rank's failure, or YOKE_OK, and is returned first.
// `device` is null if the device is at fault. Without all_gather, returns `own`.
yoke_status agree(const yoke_comm_member &member, const Device *device, yoke_status own);

}  // namespace yoke::cuda::nccl
