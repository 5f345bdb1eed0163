// Search of a rank for its peers. The result is a proved connection to each peer.
//
// Contract
//  * Of two ranks, the higher rank connects and the lower rank listens. Each end sends a Hello with the
//    communicator's cookie. Neither end trusts the other end before it has read this Hello.
//  * Other connections are dropped and logged: connections with other bytes, without bytes for some seconds, or with
//    an early end. Such connections neither fail the start nor block a thread.
//  * If a connection fails before it is proved, the rank tries again until the timeout. Missing descriptors or
//    missing memory do not pass by waiting, so the start fails at once.
#pragma once

#include <poll.h>

#include <vector>

#include "core/backend/comm.h"
#include "kernels/cpu/comm/clock.h"
#include "kernels/cpu/comm/sockets.h"
#include "kernels/cpu/comm/wire.h"

namespace yoke::cpu::comm {

class Connector {
public:
    Connector(int rank, int size, const Cookie &cookie)
        : rank_(rank), cookie_(cookie), peers_(static_cast<size_t>(size))
    {
    }

    // Adds a listening socket. The peers know the socket's name.
    void listen(Descriptor door) { doors_.push_back(static_cast<Descriptor &&>(door)); }
    // Sets the first state of the search for a peer: expect() waits for the peer's connection, seek() connects to
    // `name`.
    void expect(int peer) { peers_[static_cast<size_t>(peer)].state = State::kExpected; }
    void seek(int peer, const Name &name);

    // Connects to all peers. Returns YOKE_E_TIMEOUT, with the lowest missing rank in *missing, if the time is over.
    // Returns YOKE_E_CANCELLED if the group has failed. Fails at once if descriptors or memory are missing.
    yoke_status run(const Deadline &deadline, const yoke_comm_member &init, int *missing);
    Descriptor take(int peer)
    {
        return static_cast<Descriptor &&>(peers_[static_cast<size_t>(peer)].socket);
    }

private:
    enum class State { kDone, kExpected, kPausing, kConnecting, kGreeting };

    // First bytes of a connection, as far as received.
    struct Reading {
        Hello hello;
        size_t bytes = 0;
    };
    struct Peer {
        State state = State::kDone;
        Name name;
        Descriptor socket;
        Reading reading;
        int64_t again = 0;  // time of the next attempt
    };
    // Accepted connection with an unknown peer.
    struct Unproved {
        Descriptor socket;
        Reading reading;
        int64_t until = 0;
    };

    Hello hello_to(int peer) const;
    bool is_ours(const Hello &hello, int from) const;
    static Got read_hello(int socket, Reading *reading);

    yoke_status connect_to(Peer &peer, int64_t now);
    void pause(Peer &peer, int64_t now);
    yoke_status go_on(int number, int64_t now);
    void greet(int number, int64_t now);
    yoke_status admit(const Descriptor &door, int64_t now);
    bool hear(Unproved &unproved, int64_t now);
    static void drop(const Unproved &unproved, int rank, const char *why);
    yoke_status step(int64_t now);
    void wait(const Deadline &deadline, int64_t now);
    int lowest_missing() const;

    int rank_;
    Cookie cookie_;
    std::vector<Peer> peers_;
    std::vector<Descriptor> doors_;
    std::vector<Unproved> unproved_;
    std::vector<pollfd> polled_;
};

}  // namespace yoke::cpu::comm
