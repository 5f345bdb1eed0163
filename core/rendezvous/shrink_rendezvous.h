// shrink_rendezvous.h: the ranks of a group that still live find each other without what they met by: rank 0 and the
// launcher may be gone.
//
// Every process of a group keeps a port open for that, and knows those of the others. Who wants a smaller group serves
// a store at its own and looks for the lowest rank that lives, which leads: a port that refuses, or is another
// job's by now, is that of a process which has gone; one that does not answer is waited for until the time for ranks to
// come is over, and one between that does answer is followed meanwhile; a rank that has found a lower one tells so. The
// leader waits until each other rank has come to it or has gone, or its time is over, and says who is there. Nobody
// makes a group of his own where others have gone on: whoever comes later is told.
#pragma once

#include "core/rendezvous/cause.h"
#include "core/rendezvous/members.h"
#include "core/store/socket.h"
#include "core/store/store_server.h"

#include <string>
#include <vector>

namespace yoke {

// Where each process of a group listens for it, and what tells its ranks from strangers.
class ShrinkPorts {
public:
    ShrinkPorts() = default;
    // In the making of a group: `gather` gives the texts of all ranks.
    template <class Gather>
    ShrinkPorts(const RankInfo &self, Gather &&gather)
    {
        open(self);
        read(gather(text()));
    }

    bool present() const noexcept { return listening_.present(); }
    Socket listening() const;  // one more
    SocketAddress address(const RankInfo &of, Deadline deadline) const;
    std::string cookie() const { return "shrink " + secret_; }
    // Returns what this rank tells of itself where another rank listens, and what its own server takes.
    PeerOptions peer_options(const Members &of, PeerObserver observer) const;

private:
    void open(const RankInfo &self);
    std::string text() const;
    void read(const std::vector<std::string> &texts);

    Socket listening_;
    std::vector<uint16_t> ports_;  // by rank
    std::string secret_;           // rank 0's
};

// The members of the smaller group, for its making. Raises YOKE_E_COMM where the others have gone on without this rank,
// and on all ranks where one of them lacks descriptors or memory for it, which raises YOKE_E_IO or YOKE_E_OOM itself.
// Who is not there at `deadline` is left out; what those that are have to hear of each other has time until `end`.
Members reunite_processes(const Members &of, const ShrinkPorts &ports, Deadline deadline,
                          Deadline end);
// The same for threads of one process, `attempt` counted alike in each.
Members reunite_threads(const Members &of, int attempt, Deadline deadline);
// Of who gives such a try up: where others count it as there, what they make ends with this cause.
void leave_threads(const Members &of, int attempt, const Cause &why);
// Once their group is made: no further try makes another one. Raises YOKE_E_COMM where others have gone on so already.
void go_on_as_threads(const Members &of, const Members &made);

}  // namespace yoke
