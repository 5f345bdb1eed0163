// A communicator of the MPI engine, and what its parts hand to one another.
//
// A call runs in the thread that makes it: it greets the other ranks with what it is going to do (greet.cpp), and once
// all have said the same it starts MPI's non-blocking operations and tests them until they are done (flow.cpp). Nothing
// of MPI that blocks is called, so that a deadline or an abort can end the wait; what was begun then stays begun.
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

// By rank, in bytes: how long its slice of a tensor is and where that begins; of this rank's slice the same of all
// ranks' elements, one behind the other.
struct Slices {
    std::vector<int> bytes, begins, mine, places;
    int64_t count_of_mine = 0;
};

// Memory that MPI's operations read and write beside the caller's tensors. Operations that were given up may go on with
// this memory, so the memory ends with the communicator alone.
struct Buffers {
    // Signatures that a greeting has told: this rank's first, then those of the next ranks in a circle.
    std::vector<Signature> board;
    std::deque<Signature> headers;               // of messages that are sent
    std::deque<kernels::ReusedBuffer> received;  // headers of messages that are to come
    kernels::ReusedBuffer staging, partials, result;
    std::deque<Slices> slices;
};

struct Comm {
    int rank = 0;
    int size = 1;
    MPI_Comm ranks = MPI_COMM_NULL;
    std::vector<std::vector<int>> nodes;  // in the order of their lowest ranks, ranks in theirs
    size_t my_node = 0, my_place = 0;     // this rank's node, and its place there
    // Where there are several nodes of equally many ranks, several: those of this one's node, and those of its place.
    MPI_Comm within = MPI_COMM_NULL, across = MPI_COMM_NULL;
    CombineFn combine = nullptr;
    // Of one operation of MPI, whose counts are ints.
    int64_t most_bytes = 1 << 30;

    std::atomic<bool> aborted{false};
    bool has_failed = false;
    bool has_messages = false;  // sends or receives have been made
    bool is_abandoned = false;  // MPI still has operations of it, and so this stays for good

    Buffers buffers;
    kernels::CallGroup group;
    Memory memory;
};

// connect.cpp: a communicator of the ranks that call it together.
yoke_status connect(Comm &comm, const yoke_comm_member &member);
void disconnect(Comm &comm);

// One call, by op; of messages several, none of which waits for another.
yoke_status run_exchange(Comm &comm, const yoke_collective &call);
yoke_status run_reduction(Comm &comm, const yoke_collective &call);
yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count);

}  // namespace yoke::mpi
