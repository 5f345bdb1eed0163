// reach.h: how rank 0 comes to listen, and how the other ranks find where.
//
// At one port where somebody has named it. Under torchrun that one is the launcher's own, and others name none: then
// both sides make the same 16 ports from the job's name, rank 0 takes the first that is free, and the job's cookie
// tells it from other jobs that listen at one of them.
#pragma once

#include "core/rendezvous/environment.h"
#include "core/store/store_client.h"

namespace yoke {

// What ranks of a job present, of at most 256 bytes.
std::string job_cookie(const std::string &job);

// At a port that nobody has named; raises YOKE_E_IO where the system gives none.
Socket listen_at_any_port();

// Raises YOKE_E_COMM where no port is free, naming who has it, as far as it tells.
Socket listen_as_rank_0(const Environment &environment, const std::string &job,
                        const PeerOptions &self);
// Tries until the deadline. Raises YOKE_E_TIMEOUT with what every address answered; YOKE_E_COMM at once where rank 0
// refuses this rank.
std::shared_ptr<ClientStore> reach_rank_0(const Environment &environment, const std::string &job,
                                          const PeerOptions &self, Deadline deadline);

}  // namespace yoke
