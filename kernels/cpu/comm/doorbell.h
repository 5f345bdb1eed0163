// Doorbells, with which ranks wake each other over shared memory.
//
// Contract
//  * Each rank has a doorbell in its own shared memory. If a rank finds no work, it sleeps by its doorbell. After a
//    peer has written or taken bytes, the peer rings the doorbell if the rank sleeps for this event.
//  * No ring is lost. The sleeper first announces its sleep and then looks once more. The ringer first publishes its
//    bytes and then asks for sleepers. Both sides' steps are sequentially consistent, so at least one side sees the
//    other.
//  * If a rank also waits for sockets, the rank sleeps in poll, and the peer rings an eventfd. Otherwise the rank
//    sleeps in a futex, which is quicker.
#pragma once

#include <atomic>
#include <cstdint>

namespace yoke::cpu::comm {

// Events for which a rank sleeps, and the kind of the sleep.
constexpr uint32_t kForData = 1, kForRoom = 2, kByEvent = 4;

// Lies in shared memory.
struct Bell {
    alignas(64) std::atomic<uint32_t> rings;
    std::atomic<uint32_t> sleeps;  // kFor…, 0: awake
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Wakes the owner if the owner sleeps for event `what`. `event` is the owner's eventfd.
void ring(Bell &bell, uint32_t what, int event);
// Wakes the owner from a sleep in the futex, for whatever event it sleeps. Peers call ring(), which does nothing if
// the owner is awake.
void ring_always(Bell &bell);

// Begins a sleep for the events `what` and returns the number of rings so far; get_up() ends the sleep. Between both
// calls the owner looks once more. If there is still no work, it sleeps until this number changes.
uint32_t lie_down(Bell &bell, uint32_t what);
void get_up(Bell &bell);
void sleep_in_futex(Bell &bell, uint32_t rings, int64_t nanoseconds);

void wake_event(int event);
void drain_event(int event);

}  // namespace yoke::cpu::comm
