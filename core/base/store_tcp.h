// store_tcp.h: the table of rank 0, served to the other ranks over TCP.
//
// A rank's connection is its heartbeat, too: where it ends without a farewell the rank has died, and where nothing
// comes for `silence_s` it has been stopped, or its network. Both sides notice: rank 0 for every rank, each rank for
// rank 0. All sockets of a process are looked after by its one watch thread (core/base/watch.h).
//
// A server gives no more than a line of memory to whoever has not named the job's cookie, for at most kGreeting
// seconds, and drops what speaks another protocol. What a known rank may have under way is bounded as well.
#pragma once

#include "core/base/socket.h"
#include "core/base/store_hash.h"

#include <memory>

namespace yoke {

// What a connection tells of the rank at its other end.
struct PeerEvent {
    enum Kind {
        kJoined,
        kLeft,    // with a farewell
        kEnded,   // without: it has died
        kSilent,  // nothing came for silence_s; told once until it is heard again
        kHeard,   // after a silence
    };
    int32_t rank;
    Kind kind;
    double silent_s;
    std::string how;  // "the connection was closed", "Connection reset by peer"
};
// Called in the watch thread, with no lock held; must return soon. It may call when_set of any store, and set, add and
// remove of rank 0's table, but nothing that waits for another process.
using PeerObserver = std::function<void(const PeerEvent &)>;

struct TcpOptions {
    std::string cookie;     // alike on all ranks of a job; another job's rank is refused
    int32_t rank = 0;       // of who opens it
    int32_t size = 1;       // of the job, which bounds how many connections a server has
    double silence_s = 30;  // 0: never
    PeerObserver observer;  // may be empty
    std::string
        about;  // of this process, for those that are refused: "rank 0 of 4 on node1, process 17"
};

class StoreServer;

// Rank 0's: serves until the last reference has gone, and says farewell then.
class TcpServerStore {
public:
    // On a socket that listens.
    TcpServerStore(Socket listening, TcpOptions options);
    ~TcpServerStore();
    // The table, for rank 0 itself.
    const std::shared_ptr<HashStore> &table() const noexcept;
    SocketAddress address() const;
    // Until every rank that joined has left or died; false when the deadline has passed before.
    bool wait_until_left(Deadline deadline);

private:
    std::shared_ptr<StoreServer> server_;
};

// Connects to rank 0's server at one address, once. Raises YOKE_E_COMM: nobody listens (native_code: errno), it is no
// server of Yoke's, or it serves another job, where the message is the server's own; YOKE_E_TIMEOUT.
std::shared_ptr<Store> connect_store(const SocketAddress &server, const TcpOptions &options,
                                     Deadline deadline);
// The local address of a connection that connect_store made, as peers can reach this host: "10.0.0.7".
std::string local_address(const Store &store);

}  // namespace yoke
