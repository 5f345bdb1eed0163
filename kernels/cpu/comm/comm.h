// A communicator of the host engine, and what its parts hand to one another.
//
// The engine has no thread: the calling thread drives all links of its rank, first spinning for some microseconds, then
// asleep until a peer, a socket or abort wakes it (waiter.cpp). A call is a Flow: for each peer a list of what goes
// there and what is to come from there, made by its algorithm (exchange.cpp, reduce.cpp) and carried out by one loop
// for shared memory and TCP alike (flow.cpp).
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

// Which ranks stand on one node. Nodes are in the order of their lowest ranks, ranks within one in theirs.
struct Layout {
    std::vector<std::vector<int>> nodes;
    std::vector<int> node_of;   // by rank
    std::vector<int> index_of;  // by rank: its place in its node

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
    double patience_s = -1;  // of calls that bring no time of their own
    CombineFn combine = nullptr;

    // What wakes this rank; `bell` lies in its block of shared memory, where it has one.
    Descriptor event;
    Descriptor block;
    Mapping block_head;
    Bell *bell = nullptr;
    std::vector<std::unique_ptr<Link>> links;  // by rank; null for this one
    std::string address;                       // as describe tells it

    std::atomic<bool> aborted{false};
    bool has_failed = false;
    int64_t most_spin_ns = 0;  // of a wait, before it sleeps

    Regions regions;
    std::unique_ptr<Flow> flow;
    kernels::ReusedBuffer staging, partials;
    kernels::CallGroup group;

    bool shares_with(int peer) const { return links[peer] && links[peer]->is_shared_memory(); }
    // Whether all ranks stand on one node and share memory.
    bool is_all_shared() const;
};

using kernels::can_reduce;

inline uint64_t dtype_bytes(yoke_dtype dtype)
{
    return static_cast<uint64_t>(kernels::dtype_bytes(dtype));
}

// connect.cpp: finds the peers and opens the links.
yoke_status connect(Comm &comm, const yoke_comm_member &init);

// One call's part of a communicator, by op.
yoke_status run_exchange(Comm &comm, const yoke_collective &call);
yoke_status run_reduction(Comm &comm, const yoke_collective &call);
// Sends and receives of a group: none waits for another.
yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count);
// all_reduce where all ranks' tensors lie in memory that each of them reaches. *done is false where they do not;
// *greeted is true if the ranks have exchanged their headers then.
yoke_status all_reduce_in_place(Comm &comm, const yoke_collective &call, bool *greeted, bool *done);

}  // namespace yoke::cpu::comm
