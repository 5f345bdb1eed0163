#include "core/comm/late/call_watch.h"

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/start_thread.h"
#include "core/comm/ending.h"
#include "core/comm/init.h"
#include "core/comm/late/let_go.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace yoke {

namespace {

struct Watched {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::shared_ptr<Flights>> flights;  // only the thread removes an entry
    std::vector<std::shared_ptr<Flights>> left;     // released by other threads
    pid_t process = 0;                              // process with the thread
    bool is_idle = false, is_stopped = false;
};
Watched &watched = immortal<Watched>();

using Time = Deadline::Clock::time_point;

// Looks at the calls of all groups, with the lock open during each look. Removes groups without a call in flight.
// Returns when to look again; null if no calls are left.
std::optional<Time> look_at_all(std::unique_lock<std::mutex> &lock)
{
    std::optional<Time> next;
    for (size_t i = 0; i < watched.flights.size();) {
        Flights &flights = *watched.flights[i];
        lock.unlock();
        const std::optional<Time> again = flights.look();
        lock.lock();
        if (again || flights.are_flying()) {  // some may have been added since
            next = std::min(next.value_or(Time::max()), again.value_or(Time::min()));
            ++i;
            continue;
        }
        watched.left.push_back(
            std::exchange(watched.flights[i], std::move(watched.flights.back())));
        watched.flights.pop_back();
    }
    return next;
}

void run() noexcept
{
    std::unique_lock lock(watched.mutex);
    while (!watched.is_stopped) {
        const std::optional<Time> next = look_at_all(lock);
        if (next) {
            watched.changed.wait_until(lock, *next, [] { return watched.is_stopped; });
            continue;
        }
        watched.is_idle = true;
        watched.changed.wait(lock, [] { return !watched.flights.empty() || watched.is_stopped; });
        watched.is_idle = false;
    }
    watched.process = 0;
    watched.changed.notify_all();
}

// Registers, once, an exit handler that leaves the groups and ends the thread. Exit handlers run in reverse order,
// and the driver of a device has registered its end by now. So the thread ends before the driver.
void end_at_exit()
{
    static std::once_flag registered;
    std::call_once(registered, [] {
        leave_at_exit([] {
            (void)leave_groups();
            CallWatch::stop();
            stop_letting_go();
        });
    });
}

}  // namespace

void CallWatch::ensure_thread(const char *call)
{
    end_at_exit();
    begin_letting_go();
    const std::lock_guard lock(watched.mutex);
    if (watched.process == getpid() || watched.is_stopped) return;
    watched.process = getpid();
    const std::string why = start_detached_thread(run);
    if (why.empty()) return;
    watched.process = 0;
    fail_in(
        call, YOKE_E_OOM,
        "the system cannot start the thread that watches collectives on devices: %s; check ulimit -u",
        why.c_str());
}

void CallWatch::watch(std::shared_ptr<Flights> flights)
{
    std::vector<std::shared_ptr<Flights>> left;  // outlives the lock
    const std::lock_guard lock(watched.mutex);
    left.swap(watched.left);
    watched.left.reserve(watched.flights.size() + 1);  // the thread then needs no memory
    if (std::ranges::find(watched.flights, flights) != watched.flights.end()) return;
    watched.flights.push_back(std::move(flights));
    if (watched.is_idle) watched.changed.notify_all();
}

std::optional<Flights::Head> CallWatch::head_of(const CommLane &lane)
{
    std::optional<Flights::Head> first;
    std::vector<std::shared_ptr<Flights>> all;
    {
        const std::lock_guard lock(watched.mutex);
        all = watched.flights;
    }
    for (const std::shared_ptr<Flights> &each : all)
        if (const auto found = each->head_on(lane);
            found && (!first || found->place < first->place))
            first = found;
    return first;
}

void CallWatch::stop() noexcept
{
    constexpr std::chrono::milliseconds kToEnd{100};
    if (is_forked_child()) return;
    std::unique_lock lock(watched.mutex);
    watched.is_stopped = true;
    watched.changed.notify_all();
    watched.changed.wait_for(lock, kToEnd, [] { return watched.process != getpid(); });
}

}  // namespace yoke
