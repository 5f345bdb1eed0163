#include "core/comm/last_meeting.h"

#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/comm/cause.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <numeric>
#include <utility>
#include <vector>

namespace yoke {

namespace {

struct LastMeeting {
    Mutex mutex{LockRank::kOther};
    pid_t process = 0;
    InitArguments arguments;
    std::weak_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
    std::condition_variable_any turn;
    pid_t meeting_in = 0;                // a child has none of these threads
    std::vector<InitArguments> meeting;  // whose threads are at it now
};
LastMeeting &last_meeting = immortal<LastMeeting>();

// Those who have met may make several groups of all ranks, one after the other or at once.
std::string name_of(int number)
{
    return "group/" + std::to_string(number);
}

Members members_at(const JobMeeting &meeting, int number)
{
    Members members;
    const Rendezvous &met = *meeting.met;
    const std::string name = name_of(number);
    members.rank = met.rank;
    members.ranks = met.arrivals;
    members.number = number_of_group(describe_process(met.arrivals[0]) + " " + name);
    members.store = std::make_shared<PrefixStore>(met.store, name);
    members.met = meeting.met;
    members.watcher = meeting.watcher;
    members.met_as.resize(members.ranks.size());
    std::iota(members.met_as.begin(), members.met_as.end(), 0);
    return members;
}

}  // namespace

void remember(const JobMeeting &meeting)
{
    std::shared_ptr<Watcher> before;  // its end takes a lock that forks take first
    const std::lock_guard lock(last_meeting.mutex);
    last_meeting.process = getpid();
    last_meeting.arguments = meeting.arguments;
    last_meeting.met = meeting.met;
    before = std::exchange(last_meeting.watcher, meeting.watcher);
}

std::optional<JobMeeting> known_meeting(const InitArguments &arguments)
{
    std::shared_ptr<const Rendezvous> met;  // it may end here, which takes time and locks
    const std::lock_guard lock(last_meeting.mutex);
    met = last_meeting.met.lock();
    if (!met || last_meeting.process != getpid() || !(last_meeting.arguments == arguments))
        return {};
    return JobMeeting{arguments, std::move(met), last_meeting.watcher};
}

void give_up(const JobMeeting &meeting)
{
    std::shared_ptr<Watcher> dropped;
    {
        const std::lock_guard lock(last_meeting.mutex);
        if (last_meeting.met.lock() == meeting.met) {
            last_meeting.met.reset();
            dropped.swap(last_meeting.watcher);
        }
    }
    if (meeting.met->server) meeting.met->server->close();
}

MeetingTurn::MeetingTurn(const InitArguments &arguments, Deadline deadline, const char *call)
    : arguments_(arguments)
{
    std::unique_lock lock(last_meeting.mutex);
    if (std::exchange(last_meeting.meeting_in, getpid()) != getpid()) last_meeting.meeting.clear();
    while (std::ranges::count(last_meeting.meeting, arguments)) {
        has_waited_ = true;
        if (deadline.has_passed())
            fail(
                YOKE_E_TIMEOUT,
                "%s: another thread of this process was within it, with the same arguments, for all of the %g s; call it in one thread, and share its group",
                call, deadline.given_s());
        last_meeting.turn.wait_for(lock, std::chrono::milliseconds(50));
        lock.unlock();
        Interruptible::check_here();
        lock.lock();
    }
    last_meeting.meeting.push_back(arguments);
}

MeetingTurn::~MeetingTurn()
{
    const std::lock_guard lock(last_meeting.mutex);
    const auto mine = std::ranges::find(last_meeting.meeting, arguments_);
    if (mine != last_meeting.meeting.end()) last_meeting.meeting.erase(mine);
    last_meeting.turn.notify_all();
}

Members members_of(const JobMeeting &meeting)
{
    return members_at(meeting, meeting.met->groups->fetch_add(1));
}

Members members_where_met(const JobMeeting &meeting, Deadline deadline)
{
    std::optional<Cause> told;
    for (int number = meeting.met->groups->load();;) {
        PrefixStore group(meeting.met->store, name_of(number));
        const auto failed = group.try_get(kCauseKey, deadline);
        if (!failed && told) told->raise();
        if (!meeting.met->groups->compare_exchange_strong(number, number + 1)) continue;
        if (!failed) return members_at(meeting, number);
        Cause cause = Cause::decode(*failed);
        if (!told && cause.status != YOKE_E_TIMEOUT) told = std::move(cause);
        ++number;
    }
}

}  // namespace yoke
