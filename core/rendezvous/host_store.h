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
    // Waits until the key is there, and returns its value. Raises YOKE_E_TIMEOUT if the deadline passes before.
    virtual std::string get(const std::string &key, Deadline deadline) = 0;
};

// Returns 128 random bits in hexadecimal.
std::string draw_secret();

// Publishes rank 0's port, the secret and this machine's addresses under the key: the addresses of the chosen
// networks, else of all networks. If the machine has no network, publishes no address and raises YOKE_E_COMM.
void publish_rank_0(HostStore &store, const std::string &key, uint16_t port,
                    const std::string &secret);

// Connects another rank to rank 0, with a cookie made of the published secret, and returns the connection. Raises
// YOKE_E_TIMEOUT with the entry that was found, and errors of the store. Raises YOKE_E_COMM if rank 0 refuses this
// rank, or if the entry is not Yoke's.
std::shared_ptr<ClientStore> find_rank_0(HostStore &store, const std::string &key, PeerOptions self,
                                         Deadline deadline);

}  // namespace yoke
