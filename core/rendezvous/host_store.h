// host_store.h: a store of the host program, by which the ranks of a job find rank 0.
//
// Rank 0 publishes its address and a random secret in this store. The other ranks read both and connect. All further
// data goes through rank 0's own store. So the host program's store is called only within init, in the caller's
// thread. It may be a script's object without support for threads, or a server that ends with the launcher. An entry
// of a former job is found to be stale, because no server at its address knows the secret. The entry is then read
// again until this job's rank 0 has come.
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

// Publishes the address of rank 0. The server listens at `port` on each network of the machine, or on the chosen
// networks.
void publish_rank_0(HostStore &store, const std::string &key, uint16_t port,
                    const std::string &secret);

// Connects another rank to rank 0, with a cookie made of the published secret. Raises YOKE_E_TIMEOUT with the entry
// that was found, YOKE_E_COMM if rank 0 refuses this rank, and errors of the store.
std::shared_ptr<ClientStore> find_rank_0(HostStore &store, const std::string &key, PeerOptions self,
                                         Deadline deadline);

}  // namespace yoke
