// reach.h: how rank 0 chooses a port, and how the other ranks find this port.
//
// If a port is given, rank 0 listens there. Under torchrun the given port belongs to the launcher, and other
// launchers may give no port. Then all ranks derive the same 16 ports from the job's name, and rank 0 takes the first
// free port. The job's cookie tells rank 0 from other jobs at the same ports.
#pragma once

#include "core/rendezvous/environment.h"
#include "core/store/store_client.h"

namespace yoke {

// Returns the cookie that ranks of a job present, at most 256 bytes.
std::string job_cookie(const std::string &job);

// Listens at a port that the system chooses. Raises YOKE_E_IO if the system gives no port.
Socket listen_at_any_port();

// Raises YOKE_E_COMM if no port is free. The error says who uses the port, as far as known.
Socket listen_as_rank_0(const Environment &environment, const std::string &job,
                        const PeerOptions &self);
// Tries until the deadline. Raises YOKE_E_TIMEOUT with what every address answered; YOKE_E_COMM at once where rank 0
// refuses this rank.
std::shared_ptr<ClientStore> reach_rank_0(const Environment &environment, const std::string &job,
                                          const PeerOptions &self, Deadline deadline);

}  // namespace yoke
