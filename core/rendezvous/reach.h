// reach.h: how rank 0 chooses a port, and how the other ranks find this port.
//
// If a port is given, rank 0 listens there. Under torchrun the given port belongs to the launcher, and other
// launchers may give no port. Then all ranks derive the same 16 ports from the job's name, and rank 0 takes the first
// free port. The job's cookie tells rank 0 from other jobs at the same ports.
#pragma once

#include "core/rendezvous/environment.h"
#include "core/store/store_client.h"

namespace yoke {

// Returns the cookie by which ranks of a job know each other: the job's name, or its end if the name is long. The
// cookie has at most 256 bytes.
std::string job_cookie(const std::string &job);

// Listens at a port that the system chooses. Raises YOKE_E_IO if the system gives no port.
Socket listen_at_any_port();

// Listens at the given port, or at the first free port made of the job's name. Raises YOKE_E_COMM if no port is free;
// the error says who uses a given port, as far as known. Raises YOKE_E_IO if descriptors or memory are missing, after
// a notice to the other ranks.
Socket listen_as_rank_0(const Environment &environment, const std::string &job,
                        const PeerOptions &self);
// Connects to rank 0 and returns the connection; tries each address until the deadline. Raises YOKE_E_TIMEOUT with
// the answers of all addresses. Raises YOKE_E_COMM at once if rank 0 refuses this rank, and YOKE_E_IO if descriptors
// or memory are missing.
std::shared_ptr<ClientStore> reach_rank_0(const Environment &environment, const std::string &job,
                                          const PeerOptions &self, Deadline deadline);

}  // namespace yoke
