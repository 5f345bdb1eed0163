// known_rendezvous.h: the rendezvous of this process, by job. A further init of the same job makes its group there at
// once.
#pragma once

#include "core/rendezvous/members.h"

namespace yoke {

// Rendezvous of the ranks of this process's groups, with the watcher of the connections.
struct JobRendezvous {
    InitArguments arguments;
    std::shared_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
};

void remember(const JobRendezvous &joining);
// Returns the rendezvous made with these arguments, if one of its groups is alive.
std::optional<JobRendezvous> known_rendezvous(const InitArguments &arguments);
// Forgets the rendezvous and frees rank 0's port, so the ranks can start a new rendezvous.
void give_up(const JobRendezvous &joining);

// Turn of a thread at a rendezvous. If several threads of a process used the same arguments at once, the process
// would join twice with the same rank.
class RendezvousTurn {
public:
    // Waits while another thread of this process joins with the same arguments. Raises YOKE_E_TIMEOUT in the name of
    // `call` if the deadline passes before.
    RendezvousTurn(const InitArguments &arguments, Deadline deadline, const char *call);
    ~RendezvousTurn();
    RendezvousTurn(const RendezvousTurn &) = delete;
    RendezvousTurn &operator=(const RendezvousTurn &) = delete;
    // Returns whether the constructor waited for another thread. The other thread's rendezvous may serve this thread
    // too.
    bool has_waited() const { return has_waited_; }

private:
    const InitArguments &arguments_;
    bool has_waited_ = false;
};

// Returns the members of the next group of this rendezvous, and counts the group. Does not check whether the group
// failed on another rank: used for the first group of a new rendezvous.
Members members_of(const JobRendezvous &joining);
// Returns the members of the next group of this rendezvous. Skips groups that failed on other ranks, such as by a
// timeout. If a skipped group failed for another reason, raises the first such cause, once for all skipped groups.
Members members_where_met(const JobRendezvous &joining, Deadline deadline);

}  // namespace yoke
