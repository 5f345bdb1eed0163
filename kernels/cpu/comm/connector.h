// How a rank finds its peers: one proved connection to each of them.
//
// Contract
//  * Of two ranks the higher one connects and the lower one listens. Each end sends a Hello with the communicator's
//    cookie, and neither believes the other before it has read it.
//  * Whoever else comes to a door is dropped and logged: one who sends something else, one who says nothing for some
//    seconds, one who leaves. None of them costs a rank its start, and no thread waits for them.
//  * A connection that fails before it is proved is tried again until the time is up. Only a lack of descriptors or
//    memory, which no waiting ends, fails the start at once.
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

    // A listening socket, of which the peers have been told.
    void listen(Descriptor door) { doors_.push_back(static_cast<Descriptor &&>(door)); }
    // What is to come about with each peer.
    void expect(int peer) { peers_[static_cast<size_t>(peer)].state = State::kExpected; }
    void seek(int peer, const Name &name);

    // YOKE_OK, or YOKE_E_TIMEOUT with the lowest rank that is missing.
    yoke_status run(const Deadline &deadline, const yoke_comm_member &init, int *missing);
    Descriptor take(int peer)
    {
        return static_cast<Descriptor &&>(peers_[static_cast<size_t>(peer)].socket);
    }

private:
    enum class State { kDone, kExpected, kPausing, kConnecting, kGreeting };

    // The first bytes of a connection, as far as they have come.
    struct Reading {
        Hello hello;
        size_t bytes = 0;
    };
    struct Peer {
        State state = State::kDone;
        Name name;
        Descriptor socket;
        Reading reading;
        int64_t again = 0;  // when it is tried once more
    };
    // A connection that was accepted, and has not said yet whose it is.
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
