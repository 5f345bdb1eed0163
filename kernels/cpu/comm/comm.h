// Communicator of the cpu engine, and the types shared by its parts.
//
// The engine has no thread: the calling thread drives all links of its rank. First the thread spins for some
// microseconds. Then it sleeps until a peer, a socket or abort wakes the thread (waiter.cpp). A call is a Flow: for
// each peer, a list of sends and a list of receives. The algorithm of the call makes the lists (exchange.cpp,
// reduce.cpp). A single loop carries out the lists, for shared memory and TCP alike (flow.cpp).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/call_group.h"
#include "kernels/common/reused_buffer.h"
#include "kernels/cpu/comm/doorbell.h"
#include "kernels/cpu/comm/link.h"
#include "kernels/cpu/comm/regions.h"
#include "kernels/cpu/comm/shared.h"
#include "kernels/cpu/comm/wire.h"

namespace yoke::cpu::comm {

// Ranks by node. Nodes are ordered by the lowest rank, and the ranks of a node by number.
struct Layout {
    std::vector<std::vector<int>> nodes;
    std::vector<int> node_of;   // by rank
    std::vector<int> index_of;  // by rank: place in the node

    size_t fewest() const;  // ranks on a node
    size_t most() const;
};

class Flow;

struct Comm {
    Comm();
    ~Comm();

    int rank = 0;
    int size = 1;
    Layout layout;
    double patience_s = -1;  // timeout of calls without an own timeout
    CombineFn combine = nullptr;

    // Objects to wake this rank. If the rank has shared memory, `bell` lies in the rank's block.
    Descriptor event;
    Descriptor block;
    Mapping block_head;
    Bell *bell = nullptr;
    std::vector<std::unique_ptr<Link>> links;  // by rank; null for this rank
    std::string address;                       // address for describe

    std::atomic<bool> aborted{false};
    bool has_failed = false;
    int64_t most_spin_ns = 0;  // longest spin before a sleep

    Regions regions;
    std::unique_ptr<Flow> flow;
    kernels::ReusedBuffer staging, partials;
    kernels::CallGroup group;

    bool shares_with(int peer) const { return links[peer] && links[peer]->is_shared_memory(); }
    // Returns whether this rank shares memory with every other rank. Returns false in a group of one rank.
    bool is_all_shared() const;
};

using kernels::can_reduce;

inline uint64_t dtype_bytes(yoke_dtype dtype)
{
    return static_cast<uint64_t>(kernels::dtype_bytes(dtype));
}

// Finds the peers and opens the links to them.
yoke_status connect(Comm &comm, const yoke_comm_member &init);

// Runs a call: run_exchange moves elements, run_reduction combines elements.
yoke_status run_exchange(Comm &comm, const yoke_collective &call);
yoke_status run_reduction(Comm &comm, const yoke_collective &call);
// Runs the sends and receives of a group together, so no message waits for another.
yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count);
// Runs all_reduce on tensors in memory reached by all ranks, and sets *done. If a rank's tensor lies elsewhere,
// leaves *done false. Sets *greeted if the ranks have exchanged headers.
yoke_status all_reduce_in_place(Comm &comm, const yoke_collective &call, bool *greeted, bool *done);

}  // namespace yoke::cpu::comm
