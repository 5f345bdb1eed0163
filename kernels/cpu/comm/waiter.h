// How a call waits: a short spin, then asleep until there is something to do.
//
// Contract
//  * Whoever waits for sockets alone spins where little is to come: a sleep would take longer than that does.
//  * Beside peers that share memory alone a rank sleeps in a futex, for a twentieth of a second at most, and looks as
//    often for peers that have died.
//  * Where sockets matter a rank sleeps in poll, which tells of everything.
#pragma once

#include <poll.h>

#include "kernels/cpu/comm/comm.h"

namespace yoke::cpu::comm {

class Flow;

// Waits of one communicator. After a spin in vain the next spin is shorter, after another one longer.
class Waiter {
public:
    explicit Waiter(Comm &comm) : comm_(comm), spin_ns_(comm.most_spin_ns) {}

    // Waits until something of the flow may be moved. Called when nothing can be.
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
