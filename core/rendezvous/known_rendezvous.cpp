#include "core/rendezvous/known_rendezvous.h"

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

// Rendezvous of this process. A process may join several jobs, such as a job by its variables and others by
// arguments.
struct KnownRendezvous {
    pid_t process;
    InitArguments arguments;
    std::weak_ptr<const Rendezvous> met;
    std::shared_ptr<Watcher> watcher;
};

struct KnownRendezvousList {
    Mutex mutex{LockRank::kOther};
    std::vector<KnownRendezvous> all;
    std::condition_variable_any turn;
    pid_t joining_in = 0;                // a child process has no such threads
    std::vector<InitArguments> joining;  // arguments of the threads in a rendezvous now
};
KnownRendezvousList &known_rendezvous_list = immortal<KnownRendezvousList>();

// Takes matching entries out of the list and returns the entries. The caller destroys the entries after the release
// of the list's lock. Their destructors take a lock that comes first in a fork.
template <class F>
std::vector<KnownRendezvous> taken_out(const F &matches)
{
    std::vector<KnownRendezvous> taken;
    for (auto each = known_rendezvous_list.all.begin(); each != known_rendezvous_list.all.end();)
        if (matches(*each)) {
            taken.push_back(std::move(*each));
            each = known_rendezvous_list.all.erase(each);
        } else {
            ++each;
        }
    return taken;
}

// Returns the name of a group, for its keys. The ranks of a rendezvous may make several groups of all ranks, in
// sequence or at once.
std::string name_of(int number)
{
    return "group/" + std::to_string(number);
}

Members members_at(const JobRendezvous &joining, int number)
{
    Members members;
    const Rendezvous &met = *joining.met;
    const std::string name = name_of(number);
    members.rank = met.rank;
    members.ranks = met.ranks;
    members.number = number_of_group(describe_process(met.ranks[0]) + " " + name);
    members.store = std::make_shared<PrefixStore>(met.store, name);
    members.met = joining.met;
    members.watcher = joining.watcher;
    members.met_as.resize(members.ranks.size());
    std::iota(members.met_as.begin(), members.met_as.end(), 0);
    return members;
}

}  // namespace

void remember(const JobRendezvous &joining)
{
    std::vector<KnownRendezvous> dropped;
    const std::lock_guard lock(known_rendezvous_list.mutex);
    dropped = taken_out([&](const KnownRendezvous &each) {
        return each.met.expired() || each.process != getpid() ||
               each.arguments == joining.arguments;
    });
    known_rendezvous_list.all.push_back(
        {getpid(), joining.arguments, joining.met, joining.watcher});
}

std::optional<JobRendezvous> known_rendezvous(const InitArguments &arguments)
{
    std::shared_ptr<const Rendezvous>
        met;  // maybe the last reference: its end takes time and locks
    const std::lock_guard lock(known_rendezvous_list.mutex);
    for (const KnownRendezvous &each : known_rendezvous_list.all) {
        if (each.process != getpid() || !(each.arguments == arguments)) continue;
        met = each.met.lock();
        if (met) return JobRendezvous{arguments, std::move(met), each.watcher};
    }
    return {};
}

void give_up(const JobRendezvous &joining)
{
    {
        std::vector<KnownRendezvous> dropped;
        const std::lock_guard lock(known_rendezvous_list.mutex);
        dropped = taken_out([&](const KnownRendezvous &each) {
            return !each.met.owner_before(joining.met) && !joining.met.owner_before(each.met);
        });
    }
    if (joining.met->server) joining.met->server->close();
}

RendezvousTurn::RendezvousTurn(const InitArguments &arguments, Deadline deadline, const char *call)
    : arguments_(arguments)
{
    std::unique_lock lock(known_rendezvous_list.mutex);
    if (std::exchange(known_rendezvous_list.joining_in, getpid()) != getpid())
        known_rendezvous_list.joining.clear();
    while (std::ranges::count(known_rendezvous_list.joining, arguments)) {
        has_waited_ = true;
        if (deadline.has_passed())
            fail_in(
                call, YOKE_E_TIMEOUT,
                "another thread of this process was in the same call, with the same arguments, for %g s; call it in one thread, and share the group",
                deadline.given_s());
        known_rendezvous_list.turn.wait_for(lock, std::chrono::milliseconds(50));
        lock.unlock();
        Interruptible::check_here();
        lock.lock();
    }
    known_rendezvous_list.joining.push_back(arguments);
}

RendezvousTurn::~RendezvousTurn()
{
    const std::lock_guard lock(known_rendezvous_list.mutex);
    const auto mine = std::ranges::find(known_rendezvous_list.joining, arguments_);
    if (mine != known_rendezvous_list.joining.end()) known_rendezvous_list.joining.erase(mine);
    known_rendezvous_list.turn.notify_all();
}

Members members_of(const JobRendezvous &joining)
{
    return members_at(joining, joining.met->groups->fetch_add(1));
}

Members members_where_met(const JobRendezvous &joining, Deadline deadline)
{
    std::optional<Cause> told;
    for (int number = joining.met->groups->load();;) {
        PrefixStore group(joining.met->store, name_of(number));
        const auto failed = group.try_get(kCauseKey, deadline);
        if (!failed && told) told->raise();
        if (!joining.met->groups->compare_exchange_strong(number, number + 1)) continue;
        if (!failed) return members_at(joining, number);
        Cause cause = Cause::decode(*failed);
        if (!told && cause.status != YOKE_E_TIMEOUT) told = std::move(cause);
        ++number;
    }
}

}  // namespace yoke
