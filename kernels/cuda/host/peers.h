// Copies between two devices go straight from one to the other, over NVLink or PCIe, once CUDA was asked for that;
// without, it takes them through the host.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// Before a copy: lets the scope's device read what lies at `place`, memory of another. Asked once for every two
// devices, in each direction. Never fails: what cannot be had is a line in the log, and the copy goes through the host.
// Returns CUDA's number of the device whose memory it is, or -1. YOKE_NO_PEER_ACCESS=1 leaves all but that out, for
// machines on which such copies go wrong.
int reach_peer(const Scope &scope, const void *place);

// The device's context ends, and with it all that it reached or let others reach. With the lock of opening held.
void forget_peers(Device &device);

}  // namespace yoke::cuda
