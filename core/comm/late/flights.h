// flights.h: a group's calls on the device, made alike by all ranks, until the device is done.
//
// Contract
//  * The watch thread (call_watch.h) looks at the calls. It runs no code of the host program, releases no object, and
//    waits for no other thread. The group's thread takes landed calls, and a short thread reports a failure.
//  * Calls in flight at the end of their group stay here. A short thread releases each call that lands later.
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
    // Interface to the group, until `close`.
    class Listener {
    public:
        // Wakes the group's thread, which takes the landed calls. The caller is the watch thread and holds the lock
        // of the flights.
        virtual void note_landed() noexcept = 0;
        // Fails the group with a failed call, or with the failed communicator of a call. The caller is a short
        // thread, which may wait.
        virtual void note_fault(LateCall &call, const EngineFailure &failure) noexcept = 0;

    protected:
        ~Listener() = default;
    };
    explicit Flights(Listener &listener) : listener_(&listener) {}
    // Removes the listener, waits for threads that report a failure to it, and lands the landed calls. After this the
    // listener is not called.
    void close() noexcept;

    void add(Flight flight);
    bool are_none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
    bool are_flying() const noexcept { return flying_count_.load(std::memory_order_acquire) > 0; }
    bool have_landed() const noexcept { return landed_count_.load(std::memory_order_acquire) > 0; }
    // Removes and returns the landed calls. The caller lands them, and then passes their number to note_let_go.
    std::list<Flight> take_landed() noexcept;
    void note_let_go(size_t count) noexcept { issued_ -= count; }

    // Counts a call from its issue on, before it flies. note_dropped takes off a call that has failed before its
    // flight.
    void note_issued() noexcept { ++issued_, ++issued_ever_; }
    void note_dropped() noexcept { --issued_; }
    bool are_issued() const noexcept { return issued_.load(std::memory_order_acquire) > 0; }

    // Returns the number of calls issued so far.
    uint64_t issued_ever() const noexcept { return issued_ever_.load(std::memory_order_acquire); }
    // Waits until the first `calls` issued calls have landed well, is_over() is true, or the deadline passes. Returns
    // whether they have landed well; no call behind a failed call lands well. Raises Interrupted.
    bool have_ended(uint64_t calls, const std::function<bool()> &is_over,
                    Deadline until = Deadline::never()) const;

    // Looks at the first calls, in the watch thread: lands ended calls, and reports a failure once. Returns when to
    // look again; null if no call is in flight.
    std::optional<Deadline::Clock::time_point> look() noexcept;

    // First of these calls on a lane, for people.
    struct Head {
        uint64_t place = 0;
        CurrentCall call;
    };
    std::optional<Head> head_on(const CommLane &lane) const;

private:
    using Time = Deadline::Clock::time_point;
    LateCall *head() noexcept;
    size_t ended_count() noexcept;
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
        landed_;  // the watch thread moves calls between the lists without memory
    // Counts of running calls, of landed calls, and of both.
    std::atomic<size_t> flying_count_{0}, landed_count_{0}, count_{0};
    std::atomic<size_t> issued_{
        0};  // running and landed calls, and calls that have not been launched
    std::atomic<uint64_t> issued_ever_{0}, ended_ever_{0};
    WatchedFlight watched_;  // used by the watch thread
};

}  // namespace yoke
