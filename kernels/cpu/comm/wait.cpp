// How a flow waits: a short spin, then asleep until there is something to do.
//
// Whoever waits for sockets alone spins where little is to come: a sleep would take longer than that does.
// Beside peers that share memory alone a rank sleeps in a futex, for a twentieth of a second at most, and looks as
// often for peers that have died. Where sockets matter it sleeps in poll, which tells of everything.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

constexpr int64_t kNap = 50'000'000;
constexpr int64_t kLongestPoll = 10'000'000'000;
// As long as it takes to wake a sleeper: two ranks that sleep in turn would never come out of it with less.
constexpr int64_t kLeastSpin = 10'000;

static void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// What the peers' memory must bring; 0 where no link in use is of shared memory.
uint32_t Flow::wanted() const
{
    uint32_t wants = 0;
    for (int peer : used_) {
        const Lane &lane = lanes_[static_cast<size_t>(peer)];
        if (!lane.is_open() || !lane.link->is_shared_memory()) continue;
        wants |= (lane.sends() ? kForRoom : 0) | (lane.awaits() ? kForData : 0);
    }
    return wants;
}

static bool sends_now(const Lane &lane)
{
    if (!lane.sends()) return false;
    const OutStep &step = lane.out[lane.out_at];
    return !step.gate || *step.gate >= step.at_least;
}

bool Flow::spin()
{
    const int64_t start = now_ns();
    do {
        for (int i = 0; i < 16; ++i) relax();
        if (move() || mismatched_ >= 0) return true;
    } while (now_ns() - start < comm_.spin_ns);
    return false;
}

// Notes which peers' sockets have ended, and sleeps until there is something about one, `nanoseconds` at most.
void Flow::sleep_in_poll(int64_t nanoseconds, bool looks_at_ends_alone)
{
    polled_.clear();
    for (int peer : used_) {
        const Lane &lane = lanes_[static_cast<size_t>(peer)];
        if (!lane.is_open()) continue;
        short events = POLLRDHUP;
        if (!lane.link->is_shared_memory())
            events =
                static_cast<short>((lane.awaits() ? POLLIN : 0) | (sends_now(lane) ? POLLOUT : 0));
        polled_.push_back({lane.link->socket(), events, 0});
    }
    const size_t sockets = polled_.size();
    if (!looks_at_ends_alone) polled_.push_back({comm_.event.get(), POLLIN, 0});
    const timespec most = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                           static_cast<long>(nanoseconds % 1'000'000'000)};
    if (ppoll(polled_.data(), polled_.size(), &most, nullptr) <= 0) return;
    size_t at = 0;
    for (int peer : used_) {
        Lane &lane = lanes_[static_cast<size_t>(peer)];
        if (!lane.is_open()) continue;
        // Of a socket that is read the end shows there, behind what came before it.
        const bool is_read = lane.awaits() && !lane.link->is_shared_memory();
        if (!is_read && polled_[at].revents & (POLLRDHUP | POLLHUP | POLLERR)) lane.link->close();
        ++at;
    }
    if (polled_.size() > sockets && polled_[sockets].revents) drain_event(comm_.event.get());
}

// False where a last look found something to do.
bool Flow::sleep(uint32_t wants)
{
    bool has_sockets = false;
    for (int peer : used_)
        has_sockets |= lane(peer).is_open() && !lane(peer).link->is_shared_memory();
    uint32_t rings = 0;
    if (wants) {
        rings = lie_down(*comm_.bell, wants | (has_sockets ? kByEvent : 0));
        if (move() || mismatched_ >= 0 || comm_.aborted.load()) {
            get_up(*comm_.bell);
            return false;
        }
    }
    if (has_sockets) {
        sleep_in_poll(deadline_.left(kLongestPoll), false);
    } else {
        sleep_in_futex(*comm_.bell, rings, deadline_.left(kNap));
        // Signals and other peers may end each nap early.
        if (const int64_t now = now_ns(); now - looked_ns_ >= kNap) {
            looked_ns_ = now;
            sleep_in_poll(0, true);
        }
    }
    if (wants) get_up(*comm_.bell);
    return true;
}

// Called when nothing can be done. Returns when there may be something, or with what ends the call.
yoke_status Flow::wait()
{
    if (yoke_status status = blame_ended()) return status;
    const uint32_t wants = wanted();
    if ((wants || is_short_) && comm_.spin_ns && spin()) {
        comm_.spin_ns = std::min(2 * comm_.spin_ns, comm_.most_spin_ns);
        return YOKE_OK;
    }
    comm_.spin_ns = std::min(std::max(comm_.spin_ns / 2, kLeastSpin), comm_.most_spin_ns);
    sleep(wants);
    return YOKE_OK;
}

}  // namespace yoke::cpu::comm
