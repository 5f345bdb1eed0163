#include "core/rendezvous/known_meetings.h"

#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/rendezvous/cause.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <numeric>
#include <utility>
#include <vector>

namespace yoke {

namespace {

// A process may meet with several jobs, one by its variables and others by arguments.
struct KnownMeeting {
    pid_t process;
    InitArguments arguments;
    std::weak_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
};

struct KnownMeetings {
    Mutex mutex{LockRank::kOther};
    std::vector<KnownMeeting> all;
    std::condition_variable_any turn;
    pid_t meeting_in = 0;                // a child has none of these threads
    std::vector<InitArguments> meeting;  // whose threads are at it now
};
KnownMeetings &known_meetings = immortal<KnownMeetings>();

// Those that match, which the caller drops behind the lock: their end takes one that forks take first.
template <class F>
std::vector<KnownMeeting> taken_out(const F &matches)
{
    std::vector<KnownMeeting> taken;
    for (auto each = known_meetings.all.begin(); each != known_meetings.all.end();)
        if (matches(*each)) {
            taken.push_back(std::move(*each));
            each = known_meetings.all.erase(each);
        } else {
            ++each;
        }
    return taken;
}

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
    std::vector<KnownMeeting> dropped;
    const std::lock_guard lock(known_meetings.mutex);
    dropped = taken_out([&](const KnownMeeting &each) {
        return each.met.expired() || each.process != getpid() ||
               each.arguments == meeting.arguments;
    });
    known_meetings.all.push_back({getpid(), meeting.arguments, meeting.met, meeting.watcher});
}

std::optional<JobMeeting> known_meeting(const InitArguments &arguments)
{
    std::shared_ptr<const Rendezvous> met;  // it may end here, which takes time and locks
    const std::lock_guard lock(known_meetings.mutex);
    for (const KnownMeeting &each : known_meetings.all) {
        if (each.process != getpid() || !(each.arguments == arguments)) continue;
        met = each.met.lock();
        if (met) return JobMeeting{arguments, std::move(met), each.watcher};
    }
    return {};
}

void give_up(const JobMeeting &meeting)
{
    {
        std::vector<KnownMeeting> dropped;
        const std::lock_guard lock(known_meetings.mutex);
        dropped = taken_out([&](const KnownMeeting &each) {
            return !each.met.owner_before(meeting.met) && !meeting.met.owner_before(each.met);
        });
    }
    if (meeting.met->server) meeting.met->server->close();
}

MeetingTurn::MeetingTurn(const InitArguments &arguments, Deadline deadline, const char *call)
    : arguments_(arguments)
{
    std::unique_lock lock(known_meetings.mutex);
    if (std::exchange(known_meetings.meeting_in, getpid()) != getpid())
        known_meetings.meeting.clear();
    while (std::ranges::count(known_meetings.meeting, arguments)) {
        has_waited_ = true;
        if (deadline.has_passed())
            fail(
                YOKE_E_TIMEOUT,
                "%s: another thread of this process was within it, with the same arguments, for all of the %g s; call it in one thread, and share its group",
                call, deadline.given_s());
        known_meetings.turn.wait_for(lock, std::chrono::milliseconds(50));
        lock.unlock();
        Interruptible::check_here();
        lock.lock();
    }
    known_meetings.meeting.push_back(arguments);
}

MeetingTurn::~MeetingTurn()
{
    const std::lock_guard lock(known_meetings.mutex);
    const auto mine = std::ranges::find(known_meetings.meeting, arguments_);
    if (mine != known_meetings.meeting.end()) known_meetings.meeting.erase(mine);
    known_meetings.turn.notify_all();
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
