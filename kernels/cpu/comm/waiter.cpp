#include "kernels/cpu/comm/waiter.h"

#include <algorithm>

#include "kernels/cpu/comm/flow.h"
#include "kernels/cpu/relax.h"

namespace yoke::cpu::comm {

constexpr int64_t kNap = 50'000'000;
constexpr int64_t kLongestPoll = 10'000'000'000;
// Time to wake a sleeper. If two ranks sleep in turn, a shorter spin would never end this.
constexpr int64_t kLeastSpin = 10'000;

// Returns the events to wait for in the peers' memory; 0 if no link in use is through shared memory.
static uint32_t wanted(Flow &flow)
{
    uint32_t wants = 0;
    flow.each_open([&](const Lane &lane) {
        if (!lane.link->is_shared_memory()) return;
        wants |= (lane.sends() ? kForRoom : 0) | (lane.awaits() ? kForData : 0);
    });
    return wants;
}

static bool sends_now(const Lane &lane)
{
    if (!lane.sends()) return false;
    const OutStep &step = lane.out[lane.out_at];
    return !step.gate || *step.gate >= step.at_least;
}

bool Waiter::spin(Flow &flow) const
{
    const int64_t start = now_ns();
    do {
        for (int i = 0; i < 16; ++i) relax();
        if (flow.look()) return true;
    } while (now_ns() - start < spin_ns_);
    return false;
}

// Sleeps until a socket has an event, `nanoseconds` at most. Then closes the links whose sockets have ended.
void Waiter::sleep_in_poll(Flow &flow, int64_t nanoseconds, bool looks_at_ends_alone)
{
    polled_.clear();
    flow.each_open([&](const Lane &lane) {
        short events = POLLRDHUP;
        if (!lane.link->is_shared_memory())
            events =
                static_cast<short>((lane.awaits() ? POLLIN : 0) | (sends_now(lane) ? POLLOUT : 0));
        polled_.push_back({lane.link->socket(), events, 0});
    });
    const size_t sockets = polled_.size();
    if (!looks_at_ends_alone) polled_.push_back({comm_.event.get(), POLLIN, 0});
    const timespec most = {static_cast<time_t>(nanoseconds / 1'000'000'000),
                           static_cast<long>(nanoseconds % 1'000'000'000)};
    if (ppoll(polled_.data(), polled_.size(), &most, nullptr) <= 0) return;
    size_t at = 0;
    flow.each_open([&](const Lane &lane) {
        // If the rank reads a socket, the read finds the end, after the bytes before it.
        const bool is_read = lane.awaits() && !lane.link->is_shared_memory();
        if (!is_read && polled_[at].revents & (POLLRDHUP | POLLHUP | POLLERR)) lane.link->close();
        ++at;
    });
    if (polled_.size() > sockets && polled_[sockets].revents) drain_event(comm_.event.get());
}

// Sleeps until an event, a nap or the deadline ends the sleep. Returns at once if a last look found work, or if the
// call was aborted.
void Waiter::sleep(Flow &flow, uint32_t wants)
{
    bool has_sockets = false;
    flow.each_open([&](const Lane &lane) { has_sockets |= !lane.link->is_shared_memory(); });
    uint32_t rings = 0;
    if (wants) {
        rings = lie_down(*comm_.bell, wants | (has_sockets ? kByEvent : 0));
        if (flow.look() || comm_.aborted.load()) {
            get_up(*comm_.bell);
            return;
        }
    }
    if (has_sockets) {
        sleep_in_poll(flow, flow.deadline().left(kLongestPoll), false);
    } else {
        sleep_in_futex(*comm_.bell, rings, flow.deadline().left(kNap));
        // Signals and other peers may end each nap early.
        if (const int64_t now = now_ns(); now - looked_ns_ >= kNap) {
            looked_ns_ = now;
            sleep_in_poll(flow, 0, true);
        }
    }
    if (wants) get_up(*comm_.bell);
}

void Waiter::wait(Flow &flow)
{
    const uint32_t wants = wanted(flow);
    if ((wants || flow.is_short()) && spin_ns_ && spin(flow)) {
        spin_ns_ = std::min(2 * spin_ns_, comm_.most_spin_ns);
        return;
    }
    spin_ns_ = std::min(std::max(spin_ns_ / 2, kLeastSpin), comm_.most_spin_ns);
    sleep(flow, wants);
}

}  // namespace yoke::cpu::comm
