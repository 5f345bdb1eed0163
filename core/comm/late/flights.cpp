#include "core/comm/late/flights.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/start_thread.h"
#include "core/comm/await_fence.h"
#include "core/comm/late/call_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace yoke {

void Flights::add(Flight flight)
{
    {
        const std::lock_guard lock(mutex_);
        flying_.push_back(std::move(flight));
        ++count_;
        if (flying_count_++ > 0) return;  // the watch thread knows these flights
    }
    CallWatch::watch(shared_from_this());
}

std::list<Flight> Flights::take_landed() noexcept
{
    std::list<Flight> landed;
    const std::lock_guard lock(mutex_);
    landed.swap(landed_);
    landed_count_ = 0;
    count_ -= landed.size();
    return landed;
}

// Waits for the calls, and returns whether they have landed well. A call may land while the group fails, so the last
// look comes after the failure.
bool Flights::have_ended(uint64_t calls, const std::function<bool()> &is_over, Deadline until) const
{
    const auto have_landed = [&] { return ended_ever_.load(std::memory_order_acquire) >= calls; };
    for (const auto began = Deadline::Clock::now(); !have_landed();) {
        if (is_over() || until.has_passed()) return have_landed();
        check_interrupt();
        pause_between_looks(began);
    }
    return true;
}

void Flights::close() noexcept
{
    {
        std::unique_lock lock(mutex_);
        listener_ = nullptr;
        told_.wait(lock, [this] { return telling_ == 0; });
    }
    let_go();
}

// Lands the landed calls in the calling thread, because the group's thread has ended.
void Flights::let_go() noexcept
{
    const std::list<Flight> landed = take_landed();
    for (const Flight &each : landed) each.call->land(each.has_ended);
    note_let_go(landed.size());
}

std::optional<Flights::Head> Flights::head_on(const CommLane &lane) const
{
    const std::lock_guard lock(mutex_);
    if (flying_.empty()) return std::nullopt;
    const LateCall &first = *flying_.front().call;
    if (&first.engine().lane() != &lane) return std::nullopt;
    return Head{first.place(), first.current()};
}

// ---- The watch thread -------------------------------------------------------------------------------------------

LateCall *Flights::head() noexcept
{
    const std::lock_guard lock(mutex_);
    return flying_.empty() ? nullptr : flying_.front().call.get();
}

// Returns the number of calls in flight that have ended, from the first on; the first call has ended. The calls are on
// one stream, so if the last has ended, all have: one question to the driver serves a whole burst.
size_t Flights::ended_count() noexcept
{
    LateCall *last = nullptr;
    size_t count = 0;
    {
        const std::lock_guard lock(mutex_);
        last = flying_.back().call.get();
        count = flying_.size();
    }
    try {
        const bool have_all_ended = last->is_reached() && !last->engine().is_aborted();
        return have_all_ended ? count : 1;
    } catch (const std::exception &) {  // the look at the failed call finds the error again
        return 1;
    }
}

// Looks at the first call: lands ended and aborted calls, and reports a failure. Returns when to look again; null if
// no call is in flight. Only this thread removes flying calls, so the first call stays meanwhile.
std::optional<Deadline::Clock::time_point> Flights::look() noexcept
{
    using namespace std::chrono_literals;
    while (LateCall *const call = head()) {
        const Time now = Deadline::Clock::now();
        if (watched_.head != call) watched_.head = call, watched_.since = now;
        if (land_ended(*call)) continue;
        if (call->engine().is_aborted()) {
            land(SIZE_MAX, false);
            continue;
        }
        look_for_failure(*call);
        return now + std::clamp<Time::duration>((now - watched_.since) / 8, 200us, 2ms);
    }
    watched_.head = nullptr;
    return std::nullopt;
}

bool Flights::land_ended(LateCall &call) noexcept
{
    try {
        if (!call.is_reached() || call.engine().is_aborted()) return false;
    } catch (const Error &error) {
        if (!watched_.has_failed)
            watched_.found = EngineFailure{no_fault(), error.status(), error.what()};
        return false;
    } catch (const std::exception &) {  // no memory for the error; the next look asks again
        return false;
    }
    land(ended_count(), true);
    return true;
}

void Flights::land(size_t count, bool have_ended) noexcept
{
    const std::lock_guard lock(mutex_);
    for (count = std::min(count, flying_.size()); count > 0; --count) {
        flying_.front().has_ended = have_ended;
        ended_ever_ += have_ended ? 1 : 0;
        landed_.splice(landed_.end(), flying_, flying_.begin());
        ++landed_count_;
        --flying_count_;
    }
    if (listener_) return listener_->note_landed();
    (void)start_detached_thread([self = shared_from_this()] { self->let_go(); });
}

std::optional<EngineFailure> Flights::failure_of(LateCall &call)
{
    constexpr std::chrono::milliseconds kBetween{20};
    if (watched_.found) return std::exchange(watched_.found, std::nullopt);
    if (call.deadline().has_passed()) {
        EngineFailure late{no_fault(), YOKE_E_TIMEOUT, "the device did not finish in time"};
        late.fault.kind = YOKE_COMM_FAULT_LATE;
        return late;
    }
    const Time now = Deadline::Clock::now();
    if (now - watched_.asked_engine < kBetween) return std::nullopt;
    watched_.asked_engine = now;
    return call.engine().async_error();
}

void Flights::look_for_failure(LateCall &call) noexcept
try {
    if (watched_.has_failed) return;
    const std::optional<EngineFailure> failure = failure_of(call);
    if (!failure) return;
    tell(Ref<LateCall>::share(&call), *failure);
    watched_.has_failed = true;
} catch (const std::bad_alloc &) {  // the next look tries again
}

// Reports a failure to the listener. If the group has ended, gives the failure to the works of the calls instead, and
// aborts the communicator.
void Flights::tell_in_thread(LateCall &call, const EngineFailure &failure) noexcept
{
    Listener *listener = nullptr;
    {
        const std::lock_guard lock(mutex_);
        listener = listener_;
        telling_ += listener ? 1 : 0;
    }
    if (!listener) {
        call.engine().take({failure.status, failure.text}, {});
        return call.engine().abort();
    }
    listener->note_fault(call, failure);
    const std::lock_guard lock(mutex_);
    --telling_;
    told_.notify_all();
}

void Flights::tell(Ref<LateCall> call, const EngineFailure &failure)
{
    const auto run = [self = shared_from_this(), call = std::move(call), failure] {
        self->tell_in_thread(*call, failure);
    };
    if (!start_detached_thread(run).empty()) run();
}

}  // namespace yoke
