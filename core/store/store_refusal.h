// store_refusal.h: how the ranks of a job learn at once that a resource of a rank's store is missing: descriptors, or
// the watch thread.
//
// The notice is sent by a thread with a nearly empty descriptor table of its own, because the limit of a process
// counts for each table. If the system gives no such thread or table, the notice uses the descriptors left in the
// process.
#pragma once

#include "core/base/deadline.h"
#include "core/store/socket_address.h"
#include "core/store/store_peer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace yoke {

// Place where the other ranks of a job come to rank 0.
struct Door {
    int listening = -1;           // a descriptor, or -1
    std::vector<uint16_t> ports;  // without a descriptor, the first free port is opened
};

// Accepts connections in place of rank 0's server, which cannot serve, and refuses each with the reason. Ends after
// so many ranks, or after a second.
void turn_away(const Door &door, int32_t ranks, const PeerOptions &options,
               const std::string &why) noexcept;
// Notifies rank 0 why this rank cannot stay connected. Tries each of these addresses until rank 0 has the notice, for
// a second at most.
void call_off(const std::vector<SocketAddress> &servers, const PeerOptions &options,
              const std::string &why) noexcept;

// Notifies other ranks with stores of their own why this rank fails. Tries each of these addresses once, until the
// deadline. A store may also open later, at a port that listens already.
void call_off_each(const std::vector<SocketAddress> &servers, const PeerOptions &options,
                   const std::string &why, Deadline deadline) noexcept;

}  // namespace yoke
