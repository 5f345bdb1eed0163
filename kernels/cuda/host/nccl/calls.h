// Collectives: one alone, or those between group_begin and group_end.
//
// Contract
//  * The calls of a group wait in its thread, of one communicator or of several, and all are issued in one group of
//    NCCL's when the outermost one ends: one thread that has several cards would else wait for itself.
//  * A call returns when its stream has the work. NCCL may have to connect ranks first, which takes until all of them
//    call alike: that wait has the call's time.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

yoke_status call(Comm &comm, const yoke_collective &record);
void begin_group();
// Fails for all calls of the group.
yoke_status end_group(Comm &comm);

}  // namespace yoke::cuda::nccl
