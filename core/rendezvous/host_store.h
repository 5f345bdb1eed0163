// host_store.h: a table of the host program's own, by which the ranks of a job find rank 0.
//
// Rank 0 sets where it listens and a secret that it has drawn; the others read that and connect. All the rest goes over
// rank 0's own table: so the host's is called within init alone, in its caller's thread, and may be anything, a
// script's object that knows no threads, or a server that ends with the launcher. What a former job has left there is
// found to be stale, since nobody listens there who knows its secret, and is read again until this job's rank 0 has
// come.
#pragma once

#include "core/store/store_client.h"
#include "core/store/store_peer.h"

#include <string>

namespace yoke {

class HostStore {
public:
    virtual ~HostStore() = default;
    virtual void set(const std::string &key, const std::string &value) = 0;
    // Waits until the key is there; YOKE_E_TIMEOUT where the deadline passes before.
    virtual std::string get(const std::string &key, Deadline deadline) = 0;
};

// 128 bits in hexadecimal.
std::string draw_secret();

// Of rank 0, which listens at `port` on each of its networks, or on those that were chosen.
void publish_rank_0(HostStore &store, const std::string &key, uint16_t port,
                    const std::string &secret);

// Of the others; the cookie is made of what is found. Raises YOKE_E_TIMEOUT with what was found, YOKE_E_COMM where rank
// 0 refuses this rank, and what the store raises.
std::shared_ptr<ClientStore> find_rank_0(HostStore &store, const std::string &key, PeerOptions self,
                                         Deadline deadline);

}  // namespace yoke
