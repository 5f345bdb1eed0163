// shrink_rendezvous.h: how the live ranks of a group find each other without the first rendezvous. Rank 0 and the
// launcher may have ended.
//
// Every process of a group keeps a port open for this, and knows the ports of the other ranks. A rank that wants a
// smaller group serves a store at its own port and looks for the lowest live rank, the leader. If a port refuses, or
// belongs to another job by now, the port's rank has gone. If a rank does not answer, this rank waits until the time
// to join is over, and meanwhile follows a rank in between. A follower publishes the rank of its leader. The leader
// waits until each other rank has joined or gone, or until the time is over. Then the leader publishes the ranks that
// are there. A rank never makes a group of its own after the others have gone on: a late rank is notified.
#pragma once

#include "core/rendezvous/cause.h"
#include "core/rendezvous/members.h"
#include "core/store/socket.h"
#include "core/store/store_server.h"

#include <string>
#include <vector>

namespace yoke {

// Ports at which the processes of a group listen for a shrink, and the group's secret against strangers.
class ShrinkPorts {
public:
    ShrinkPorts() = default;
    // Opens this rank's port and exchanges the ports of all ranks, while a group is made. `gather` gets this rank's
    // text and returns the texts of all ranks.
    template <class Gather>
    ShrinkPorts(const RankInfo &self, Gather &&gather)
    {
        open(self);
        read(gather(text()));
    }

    bool present() const noexcept { return listening_.present(); }
    Socket listening() const;  // returns a duplicate
    SocketAddress address(const RankInfo &of, Deadline deadline) const;
    std::string cookie() const { return "shrink " + secret_; }
    // Returns this rank's options for connections to another rank and for its own server.
    PeerOptions peer_options(const Members &of, PeerObserver observer) const;

private:
    void open(const RankInfo &self);
    std::string text() const;
    void read(const std::vector<std::string> &texts);

    Socket listening_;
    std::vector<uint16_t> ports_;  // by rank
    std::string secret_;           // secret of rank 0
};

// Returns the members of the smaller group. Raises YOKE_E_COMM if the other ranks have gone on without this rank. If
// descriptors or memory are missing on a rank, this rank raises YOKE_E_IO or YOKE_E_OOM and all others raise
// YOKE_E_COMM. Ranks that are not there at `deadline` are left out. The other ranks have until `end` to exchange
// their messages.
Members reunite_processes(const Members &of, const ShrinkPorts &ports, Deadline deadline,
                          Deadline end);
// Returns the members of the smaller group, for ranks in threads of one process. Waits until all ranks have joined,
// or a thread whose deadline has passed makes the group of the joined ranks. Raises YOKE_E_COMM if the group was made
// without this rank. All threads count `attempt` alike.
Members reunite_threads(const Members &of, int attempt, Deadline deadline);
// Takes this rank out of an attempt of reunite_threads. If the other threads have made a group with this rank
// already, their group ends with this cause.
void leave_threads(const Members &of, int attempt, const Cause &why);
// Marks the group as made, so no later attempt makes another group. Raises YOKE_E_COMM if another group was made
// first, without this rank.
void go_on_as_threads(const Members &of, const Members &made);

}  // namespace yoke
