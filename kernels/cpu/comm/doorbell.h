// How ranks that share memory wake one another.
//
// Contract
//  * Each rank has one doorbell, in its own shared memory. It sleeps by it when it has found nothing to do; a peer that
//    has written or taken something rings it if it sleeps for that.
//  * Nobody misses a ring: the sleeper says that it will sleep, and then looks once more; the ringer makes its bytes
//    known, and then asks whether somebody sleeps. Both sides' steps are sequentially consistent, so one of the two
//    sees the other.
//  * A rank that waits for sockets as well sleeps in poll, where an eventfd is rung; else in a futex, which is quicker.
#pragma once

#include <atomic>
#include <cstdint>

namespace yoke::cpu::comm {

// What a sleeper waits for, and how it is woken.
constexpr uint32_t kForData = 1, kForRoom = 2, kByEvent = 4;

// Lies in shared memory.
struct Bell {
    alignas(64) std::atomic<uint32_t> rings;
    std::atomic<uint32_t> sleeps;  // kFor…, 0: awake
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Wakes the owner if it sleeps for that. `event` is its eventfd.
void ring(Bell &bell, uint32_t what, int event);
// Wakes it whatever it does; from its own process.
void ring_always(Bell &bell);

// Between these two the owner looks once more, and sleeps if there is still nothing.
uint32_t lie_down(Bell &bell, uint32_t what);
void get_up(Bell &bell);
void sleep_in_futex(Bell &bell, uint32_t rings, int64_t nanoseconds);

void wake_event(int event);
void drain_event(int event);

}  // namespace yoke::cpu::comm
