// Memory that NCCL makes and that peers reach without a copy: a window of the communicator where NCCL has windows, else
// a registered buffer.
//
// Contract
//  * Memory outlives its communicator where the host program still has it. While the communicator is there, NCCL wants
//    the memory deregistered before either goes.
//  * Memory of a communicator that was left behind is kept: a kernel of NCCL may still write to it.
//  * The lock of the list is held during no call of NCCL.
//  * Each call of NCCL is made in a thread of its own (aside.h). Memory to which NCCL does not return is left to that
//    thread, for the life of the process.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Piece of memory, in the list of all.
struct Memory {
    void *pointer = nullptr;
    uint64_t bytes = 0;
    Device *device = nullptr;
    Comm *comm = nullptr;           // null once that has gone
    ncclWindow_t window = nullptr;  // one of the two, or neither
    void *registration = nullptr;
    bool is_marked = false;   // given back, not yet freed
    bool is_refused = false;  // by NCCL, as the communicator was to go
    Memory *next = nullptr;
};

constexpr Clock::duration kToFree = std::chrono::milliseconds(50);  // for which a caller waits

// Puts memory into the list, from which it goes when it is freed.
void add(Memory *memory);
// Notes that the memory is given back.
void mark(Memory &memory);
// Frees memory that is not in the list and that NCCL no longer knows by a communicator. In a thread of its own.
void free_memory(Memory *memory);
// Frees memory that was given back and whose communicator has gone. In a thread of its own.
void free_orphans();

// All ranks call it alike. Waits for them, and for NCCL, for the communicator's patience. `fault` may be null.
yoke_status allocate(Comm &comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault);

// Frees the memory, or marks it where the communicator has calls under way: NCCL deregisters none amid them. `comm` is
// null where the communicator was destroyed before.
yoke_status give_back(Comm *comm, void *pointer, uint64_t bytes);

// Frees what was marked, where the communicator's stream is idle. Waits for the thread that does it for so long at
// most. Not in a turn.
void free_marked(Comm &comm, Clock::duration patience);

// In a turn, of a communicator without work, before it goes: NCCL lets go of all of its memory.
void deregister_all(Comm &comm);

// Frees marked memory of a communicator that has gone. Other memory is freed when it is given back.
void forget_communicator(Comm &comm);

}  // namespace yoke::cuda::nccl
