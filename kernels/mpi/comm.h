// Communicator of the MPI engine, and the types shared by its parts.
//
// A call runs in the calling thread. First it sends its signature to all ranks (greet.cpp). When all signatures
// agree, it starts MPI's non-blocking operations and tests them until they are done (flow.cpp). It never calls a
// blocking function of MPI, so a deadline or an abort can end the wait. Started operations then go on.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "kernels/common/call_group.h"
#include "kernels/common/reused_buffer.h"
#include "kernels/mpi/memory.h"
#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

using Signature = yoke_comm_signature;

// Slices by rank, in bytes: length and start of each rank's slice of a tensor. `mine` and `places`: the same for all
// ranks' elements of this rank's slice, in sequence.
struct Slices {
    std::vector<int> bytes, begins, mine, places;
    int64_t count_of_mine = 0;
};

// Memory that MPI's operations read and write beside the caller's tensors. Operations that were given up may go on with
// this memory, so the memory ends with the communicator alone.
struct Buffers {
    // Signatures received in a greeting: this rank's first, then the next ranks' in a circle.
    std::vector<Signature> board;
    std::deque<Signature> headers;               // headers of sent messages
    std::deque<kernels::ReusedBuffer> received;  // headers of messages that are to come
    kernels::ReusedBuffer staging, partials, result;
    std::deque<Slices> slices;
};

struct Comm {
    int rank = 0;
    int size = 1;
    MPI_Comm ranks = MPI_COMM_NULL;
    std::vector<std::vector<int>> nodes;  // by lowest rank; each in the order of ranks
    size_t my_node = 0, my_place = 0;     // this rank's node, and its place there
    // Communicators of this node's ranks, and of the ranks with this rank's place in each node. Only made if there
    // are several nodes with equally many ranks, more than 1.
    MPI_Comm within = MPI_COMM_NULL, across = MPI_COMM_NULL;
    CombineFn combine = nullptr;
    // Most bytes of a single MPI operation, because MPI's counts are ints.
    int64_t most_bytes = 1 << 30;

    std::atomic<bool> aborted{false};
    bool has_failed = false;
    bool has_messages = false;  // sends or receives have been made
    bool is_abandoned = false;  // MPI still has operations of it, and so this stays for good

    Buffers buffers;
    kernels::CallGroup group;
    Memory memory;
};

// Makes a communicator of all calling ranks.
yoke_status connect(Comm &comm, const yoke_comm_member &member);
void disconnect(Comm &comm);

// Runs a call: run_exchange moves elements, run_reduction combines elements. run_messages runs several messages
// together, so no message waits for another.
yoke_status run_exchange(Comm &comm, const yoke_collective &call);
yoke_status run_reduction(Comm &comm, const yoke_collective &call);
yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count);

}  // namespace yoke::mpi
