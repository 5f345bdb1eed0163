// Access between devices. After CUDA was asked for access, copies between two devices go directly, over NVLink or
// PCIe. Without access, CUDA copies through host memory.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Prepares a copy: lets the scope's device read `place`, memory of another device. CUDA is asked once for every two
// devices, in each direction. Never fails: without access, a line is logged, and the copy goes through host memory.
// Returns CUDA's number of the device that owns the memory, or -1. YOKE_NO_PEER_ACCESS=1 skips all except this
// number, for machines where such copies go wrong.
int reach_peer(const Scope &scope, const void *place);

// Forgets all access from and to the device, because its context ends. Called with the lock of opening held.
void forget_peers(Device &device);

}  // namespace yoke::cuda
