// known_rendezvous.h: where this process has met with the ranks of each of its jobs, so that a further init of one
// makes its group there, at once.
#pragma once

#include "core/rendezvous/members.h"

namespace yoke {

// Where the ranks of this process's groups have met, and who watches them.
struct JobRendezvous {
    InitArguments arguments;
    std::shared_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
};

void remember(const JobRendezvous &joining);
// That of these arguments, while a group of it lives.
std::optional<JobRendezvous> known_rendezvous(const InitArguments &arguments);
// Its ranks meet anew: rank 0's port is free for them.
void give_up(const JobRendezvous &joining);

// Threads of a process meet one after the other where they have the same arguments: at once they would be one rank
// twice.
class RendezvousTurn {
public:
    // Waits for the thread that is at it, until the deadline.
    RendezvousTurn(const InitArguments &arguments, Deadline deadline, const char *call);
    ~RendezvousTurn();
    RendezvousTurn(const RendezvousTurn &) = delete;
    RendezvousTurn &operator=(const RendezvousTurn &) = delete;
    // Whether there was one, which may have met by now for this thread too.
    bool has_waited() const { return has_waited_; }

private:
    const InitArguments &arguments_;
    bool has_waited_ = false;
};

// Of the first group that is made there.
Members members_of(const JobRendezvous &joining);
// Of the next one, which no rank has given up because others did not come in time. Raises what one has failed with for
// another reason, once for all those before.
Members members_where_met(const JobRendezvous &joining, Deadline deadline);

}  // namespace yoke
