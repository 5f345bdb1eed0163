// Memory made by NCCL and accessed by peers without a copy: a window of the communicator if NCCL supports windows,
// else a registered buffer.
//
// Contract
//  * Memory outlives its communicator if the host program still uses the memory. While the communicator exists, NCCL
//    demands deregistration before the memory or the communicator ends.
//  * Memory of a communicator left behind is kept: a kernel of NCCL may still write to the memory.
//  * The list's lock is never held during an NCCL call.
//  * Each NCCL call is made in a separate thread (aside.h). If NCCL does not return, the memory is left to this
//    thread until the process ends.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

// Piece of memory, in the list of all.
struct Memory {
    void *pointer = nullptr;
    uint64_t bytes = 0;
    Device *device = nullptr;
    Comm *comm = nullptr;           // null once that has gone
    ncclWindow_t window = nullptr;  // a window, a registration, or neither
    void *registration = nullptr;
    bool is_marked = false;   // given back, not yet freed
    bool is_refused = false;  // by NCCL, as the communicator was to go
    Memory *next = nullptr;
};

constexpr Clock::duration kToFree = std::chrono::milliseconds(50);  // for which a caller waits

// Puts memory into the list. The memory leaves the list when it is freed.
void add(Memory *memory);
// Notes that the memory is given back.
void mark(Memory &memory);
// Frees memory outside the list that NCCL no longer knows by a communicator. Runs in a separate thread.
void free_memory(Memory *memory);
// Frees memory that was given back and whose communicator has ended. Runs in a separate thread.
void free_orphans();

// Allocates memory; all ranks make the same call. Waits for the ranks, and for NCCL, for the communicator's timeout.
// `fault` may be null.
yoke_status allocate(Comm &comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault);

// Frees the memory. If the communicator has current calls, marks the memory instead: NCCL does not deregister memory
// during calls. `comm` is null if the communicator was destroyed before. Fails with YOKE_E_VALUE for other memory.
yoke_status give_back(Comm *comm, void *pointer, uint64_t bytes);

// Frees marked memory if the communicator's stream is idle and the communicator is not ending. Waits at most
// `patience` for the freeing thread. Not called in a turn.
void free_marked(Comm &comm, Clock::duration patience);

// Makes NCCL release all memory of a communicator before its end. Called in a turn, without work on the communicator.
void deregister_all(Comm &comm);

// Separates an ended communicator from its memory, and frees the marked memory. Other memory is freed when the caller
// gives it back.
void forget_communicator(Comm &comm);

}  // namespace yoke::cuda::nccl
