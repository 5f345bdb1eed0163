// Wait of a call: a short spin, then sleep until there is work.
//
// Contract
//  * If a rank waits for sockets only, it spins only for calls with few bytes: a sleep would take longer than such a
//    call.
//  * If all peers share memory, the rank sleeps in a futex, for a twentieth of a second at most. After each such
//    sleep, it looks for dead peers.
//  * If a rank waits for sockets, it sleeps in poll, which reports all events.
#pragma once

#include <poll.h>

#include "kernels/cpu/comm/comm.h"

namespace yoke::cpu::comm {

class Flow;

// Waits of one communicator. After a spin without success, the next spin is shorter; after a successful spin, longer.
class Waiter {
public:
    explicit Waiter(Comm &comm) : comm_(comm), spin_ns_(comm.most_spin_ns) {}

    // Waits until bytes of the flow may move. Called when no byte can move.
    void wait(Flow &flow);

private:
    bool spin(Flow &flow) const;
    void sleep(Flow &flow, uint32_t wants);
    void sleep_in_poll(Flow &flow, int64_t nanoseconds, bool looks_at_ends_alone);

    Comm &comm_;
    int64_t spin_ns_;
    int64_t looked_ns_ = 0;  // when a sleep beside shared memory last looked for ends
    std::vector<pollfd> polled_;
};

}  // namespace yoke::cpu::comm
