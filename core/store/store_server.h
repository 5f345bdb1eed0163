// store_server.h: the table of rank 0, served to the other ranks over TCP.
//
// A rank's connection is its heartbeat, too: where it ends without a farewell the rank has died, and where nothing
// comes for `silence_s` it has been stopped, or its network. Both sides notice: rank 0 for every rank, each rank for
// rank 0. The process's watch thread (core/store/watch.h) does all of it.
//
// Whoever has not named the job's cookie gets some KiB of memory at most, for a few seconds; what speaks
// another protocol is dropped and logged. What a known rank may have under way is bounded as well.
#pragma once

#include "core/store/socket.h"
#include "core/store/store_hash.h"
#include "core/store/store_peer.h"

#include <vector>

namespace yoke {

class StoreServer {
public:
    // On a socket that listens.
    StoreServer(Socket listening, PeerOptions options);
    ~StoreServer();
    StoreServer(const StoreServer &) = delete;
    StoreServer &operator=(const StoreServer &) = delete;

    // Says farewell to all, and lets go of the port; so does its end. Not in the watch thread.
    void close() noexcept;
    // The table, for rank 0 itself, even then.
    const std::shared_ptr<HashStore> &table() const noexcept;
    SocketAddress address() const;
    // From now on whoever comes is told that the job has all its ranks.
    void close_to_newcomers() noexcept;
    // From now on whoever comes waits for the next server at this port.
    void leave_newcomers() noexcept;
    // This host's address as ranks have reached it, one that other hosts have used if there is one; "" before any has.
    std::string reached_at() const;
    // Until every rank that joined, and is not excused, has left or died, and at least so many have; false where the
    // deadline passes before.
    bool wait_until_left(Deadline deadline, int32_t at_least = 0);
    // Who has gone on to another table may stay here, and is not waited for; nobody is excused any more.
    void excuse(const std::vector<int32_t> &ranks);
    void expect_all();

private:
    const std::shared_ptr<class StoreHall> hall_;
};

}  // namespace yoke
