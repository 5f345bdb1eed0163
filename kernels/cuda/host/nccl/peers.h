// Agreement of the ranks of a new communicator over the host, before NCCL is called: two ranks on one card or
// unlike versions would have NCCL hang, or fail with words that name nobody.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Fails alike on all ranks, with the culprit named; `own` is why this rank itself cannot go on, or YOKE_OK, and
// `device` null where it is the device that is at fault. A member that gathers nothing passes.
yoke_status agree(const yoke_comm_member &member, const Device *device, yoke_status own);

}  // namespace yoke::cuda::nccl
