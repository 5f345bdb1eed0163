// Exchange of descriptors with the ranks that share memory with this rank: at the start, and in mem_alloc.
#pragma once

#include "kernels/cpu/comm/clock.h"
#include "kernels/cpu/comm/comm.h"
#include "kernels/cpu/comm/sockets.h"

namespace yoke::cpu::comm {

// Numbers sent with the descriptors. They are equal on all ranks.
struct SwapNote {
    uint64_t number;
    uint64_t bytes;
};

class Swap {
public:
    // Prepares an exchange; with() adds the peers. `init` reports to a starting communicator whether the start is
    // over. `init` is null for a finished communicator, because abort ends such a communicator.
    Swap(Comm &comm, const Deadline &deadline, double timeout_s, const yoke_comm_member *init)
        : comm_(comm),
          deadline_(deadline),
          timeout_s_(timeout_s),
          init_(init),
          fault_(init ? init->fault : nullptr),
          sides_(static_cast<size_t>(comm.size))
    {
    }

    void with(int peer, int socket) { sides_[static_cast<size_t>(peer)].socket = socket; }
    // Descriptors sent to each peer, and as many received; the second may be -1.
    struct Pair {
        int first, second;
    };
    yoke_status run(const SwapNote &note, const Pair &ours);
    Descriptor *descriptors(int peer) { return sides_[static_cast<size_t>(peer)].theirs; }

private:
    struct Side {
        int socket = -1;
        bool has_sent = false, has_come = false;
        bool must_pause = false;  // the system takes no more descriptors for now
        SwapNote note = {};
        Descriptor theirs[2];
    };

    yoke_status step(int peer, const SwapNote &note, const Pair &ours, bool *open);
    yoke_status send(int peer, const SwapNote &note, const Pair &ours, int count);
    yoke_status receive(int peer, int count);
    yoke_status must_end(int late);
    yoke_status wait();
    yoke_status blame(yoke_status status, int32_t kind, int peer);

    Comm &comm_;
    const Deadline &deadline_;
    double timeout_s_;
    const yoke_comm_member *init_;
    yoke_comm_fault *fault_;
    std::vector<Side> sides_;
};

}  // namespace yoke::cpu::comm
