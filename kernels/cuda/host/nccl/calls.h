// Collectives: a single call, or the calls between group_begin and group_end.
//
// Contract
//  * The calls of a group, of one communicator or several, wait in their thread. When the outermost group ends, all
//    calls are issued in a single NCCL group. Otherwise a thread with several cards would wait for itself.
//  * A call returns when its stream has the work. NCCL may have to connect ranks first, which takes until all ranks
//    make the same call. This wait counts against the call's time.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

yoke_status call(Comm &comm, const yoke_collective &record);
void begin_group();
// Ends a group. The end of the outermost group issues its calls and returns their failure, which counts for all of
// them. Fails with YOKE_E_STATE without a group.
yoke_status end_group(Comm &comm);

}  // namespace yoke::cuda::nccl
