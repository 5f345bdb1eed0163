// Memory that NCCL makes and that peers reach without a copy: a window of the communicator where NCCL has windows, else
// a registered buffer.
//
// Contract
//  * Memory outlives its communicator where the host program still has it. While the communicator is there, NCCL wants
//    the memory deregistered before either goes.
//  * Memory of a communicator that was left behind is kept: a kernel of NCCL may still write to it.
//  * The lock of the list is held during no call of NCCL.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// All ranks call it alike. Waits for them for the communicator's patience.
yoke_status allocate(Comm &comm, uint64_t bytes, void **pointer);

// Frees the memory, or marks it where the communicator has calls under way: NCCL deregisters none amid them. `comm` is
// null where the communicator was destroyed before.
yoke_status give_back(Comm *comm, void *pointer, uint64_t bytes);

// Frees what was marked, where the communicator's stream is idle. Not in a turn.
void free_marked(Comm &comm);

// In a turn, of a communicator without work, before it goes: NCCL lets go of all of its memory.
void deregister_all(Comm &comm);

// Frees marked memory of a communicator that has gone. Other memory is freed when it is given back.
void forget_communicator(Comm &comm);

}  // namespace yoke::cuda::nccl
