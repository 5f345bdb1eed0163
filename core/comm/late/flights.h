// flights.h: calls of one group that the device has and that the other ranks have made alike, until the device is done.
//
// Contract
//  * The watch thread (call_watch.h) looks at the calls. It runs no code of the host program, lets go of nothing, and
//    waits for nobody: the group's thread takes the calls that have landed, and a short thread tells a failure.
//  * Calls that are in flight when their group ends stay here. A short thread lets go of each that lands later.
#pragma once

#include "core/comm/late/flight.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

class Flights : public std::enable_shared_from_this<Flights> {
public:
    // The group, until `close`.
    class Listener {
    public:
        // Wakes the group's thread. The caller is the watch thread and holds the lock of the flights.
        virtual void note_landed() noexcept = 0;
        // Fails the group with a call, or with the communicator of a call, that has failed. The caller is a short
        // thread, which may wait.
        virtual void note_fault(LateCall &call, const EngineFailure &failure) noexcept = 0;

    protected:
        ~Listener() = default;
    };
    explicit Flights(Listener &listener) : listener_(&listener) {}
    // Waits for a thread that tells a failure; the listener hears nothing after this.
    void close() noexcept;

    void add(Flight flight);
    bool are_none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
    bool are_flying() const noexcept { return flying_count_.load(std::memory_order_acquire) > 0; }
    bool have_landed() const noexcept { return landed_count_.load(std::memory_order_acquire) > 0; }
    // Returns the calls that have landed. Who takes them lands them, and says then how many they were.
    std::list<Flight> take_landed() noexcept;
    void note_let_go(size_t count) noexcept { issued_ -= count; }

    // Notes a call from its issue on, before it flies; one that does not come to fly has failed.
    void note_issued() noexcept { ++issued_, ++issued_ever_; }
    void note_dropped() noexcept { --issued_; }
    bool are_issued() const noexcept { return issued_.load(std::memory_order_acquire) > 0; }

    // Returns how many calls the group has issued so far.
    uint64_t issued_ever() const noexcept { return issued_ever_.load(std::memory_order_acquire); }
    // Returns whether the first `calls` of them have landed well: none does behind one that does not. Waits for them
    // until is_over() is true, or the deadline passes. Raises Interrupted.
    bool have_ended(uint64_t calls, const std::function<bool()> &is_over,
                    Deadline until = Deadline::never()) const;

    // Looks which calls have landed, for the watch thread. Returns when to look again; nothing if no call is in flight.
    std::optional<Deadline::Clock::time_point> look() noexcept;

    // The first of these calls on a lane, for people.
    struct Head {
        uint64_t place = 0;
        CurrentCall call;
    };
    std::optional<Head> head_on(const CommLane &lane) const;

private:
    using Time = Deadline::Clock::time_point;
    LateCall *head() noexcept;
    bool land_ended(LateCall &call) noexcept;
    void land(size_t count, bool have_ended) noexcept;
    void look_for_failure(LateCall &call) noexcept;
    std::optional<EngineFailure> failure_of(LateCall &call);
    void tell(Ref<LateCall> call, const EngineFailure &failure);
    void tell_in_thread(LateCall &call, const EngineFailure &failure) noexcept;
    void let_go() noexcept;

    mutable std::mutex mutex_;
    std::condition_variable told_;
    Listener *listener_;  // null: the group has ended
    int telling_ = 0;
    std::list<Flight> flying_,
        landed_;  // the watch thread moves calls from one to the other without memory
    // In flight; landed and not taken; both.
    std::atomic<size_t> flying_count_{0}, landed_count_{0}, count_{0};
    std::atomic<size_t> issued_{0};  // those, and those that do not fly yet
    std::atomic<uint64_t> issued_ever_{0}, ended_ever_{0};
    WatchedFlight watched_;  // the watch thread's
};

}  // namespace yoke
