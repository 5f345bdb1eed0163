// store_refusal.h: how the ranks of a job learn at once that one of them lacks what a store needs: descriptors, or the
// watch thread.
//
// They are told by a thread that has a table of descriptors of its own, with nothing in it but what it needs: the limit
// of a process is that of each table. Where the system gives no such thread or table, they are told with what
// descriptors the process has left.
#pragma once

#include "core/base/deadline.h"
#include "core/store/socket_address.h"
#include "core/store/store_peer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace yoke {

// Where the other ranks of a job come to rank 0.
struct Door {
    int listening = -1;           // a descriptor; without one
    std::vector<uint16_t> ports;  // the first of these that is free is opened
};

// By rank 0, which cannot serve: tells so many ranks why, for a second at most.
void turn_away(const Door &door, int32_t ranks, const PeerOptions &options,
               const std::string &why) noexcept;
// By another rank, which cannot stay connected to rank 0: tells that why, at one of these addresses, for a second at
// most.
void call_off(const std::vector<SocketAddress> &servers, const PeerOptions &options,
              const std::string &why) noexcept;

// By a rank to others that serve stores of their own, or will at a port that listens already: at each of these, as long
// as there is time.
void call_off_each(const std::vector<SocketAddress> &servers, const PeerOptions &options,
                   const std::string &why, Deadline deadline) noexcept;

}  // namespace yoke
