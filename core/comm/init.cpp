#include "core/comm/init.h"

#include "core/backend/ops.inc"
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/store_hash.h"
#include "core/comm/node.h"
#include "core/select/select.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <future>
#include <mutex>
#include <thread>

namespace yoke {

namespace {

struct Default {
    Mutex mutex{LockRank::kOther};
    Ref<Group> group;
};
Default &known = immortal<Default>();

void check_seconds(double seconds, const char *argument, const char *call)
{
    if (!(seconds > 0))
        fail(YOKE_E_VALUE, "%s: argument '%s' is %g; it takes seconds, more than 0", call, argument,
             seconds);
}

// Told of connections, from before there is a group.
class Watcher {
public:
    explicit Watcher(double silence_s) : silence_s_(silence_s) {}

    void watch(const Ref<Group> &group)
    {
        const std::lock_guard lock(mutex_);
        link_ = group->link();
    }
    void tell(const PeerEvent &event)
    {
        // One whose connection has ended is missed by who waits for it, whom the engine tells.
        if (event.kind != PeerEvent::kSilent) return;
        std::shared_ptr<GroupLink> link;
        {
            const std::lock_guard lock(mutex_);
            link = link_;
        }
        if (!link) return;
        const std::lock_guard lock(link->mutex);
        if (!link->group) return;
        const auto rank = static_cast<size_t>(event.rank);
        link->group->lose(cause_of_loss(
            link->group->ranks()[rank],
            format("has not been heard for %g s (YOKE_COMM_SILENCE): it is stopped, or cut off",
                   silence_s_)));
    }

private:
    const double silence_s_;
    Mutex mutex_{LockRank::kOther};
    std::shared_ptr<GroupLink> link_;
};

// Ranks of two builds may not read each other's calls alike.
std::string build_of_ranks()
{
    return format("Yoke %d.%d.%d, ops %016llx", YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR,
                  YOKE_VERSION_PATCH, static_cast<unsigned long long>(YOKE_OP_TABLE_HASH));
}

// A number that no other group of the job has: ranks of one store count alike.
uint64_t number_of(const std::string &name)
{
    return std::hash<std::string>()(name) | 1;
}

// A process may be in several groups of all ranks, one after the other or at once.
std::string next_name()
{
    static std::atomic<int> made{0};
    return "group/" + std::to_string(made.fetch_add(1));
}

}  // namespace

Ref<Group> init_group(const InitOptions &options, const char *call)
{
    check_seconds(options.timeout_s, "timeout", call);
    check_seconds(options.init_timeout_s, "init_timeout", call);
    GroupOptions how;
    how.engine = options.backend.empty() ? kHostKind : options.backend;
    how.timeout_s = options.timeout_s;
    how.init_timeout_s = options.init_timeout_s;
    (void)Engine::find(how.engine, call);
    RendezvousOptions meeting;
    meeting.arguments = options.arguments;
    meeting.timeout_s = options.init_timeout_s;
    meeting.build = build_of_ranks();
    meeting.device = current_device().name;
    meeting.store = options.store;
    const double silence_s = configured_silence();
    const auto watcher = std::make_shared<Watcher>(silence_s);
    meeting.silence_s = silence_s;
    meeting.observer = [watcher](const PeerEvent &event) { watcher->tell(event); };
    Rendezvous met = meet(meeting);
    Members members;
    const std::string name = next_name();
    members.rank = met.rank;
    members.ranks = std::move(met.arrivals);
    members.number = number_of(name);
    members.store = std::make_shared<PrefixStore>(std::move(met.store), name);
    members.server = std::move(met.server);
    Ref<Group> group = Group::make(std::move(members), how, call);
    watcher->watch(group);
    const std::lock_guard lock(known.mutex);
    if (!known.group.present()) known.group = group;
    return group;
}

std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call)
{
    constexpr int32_t kMost = 1024;
    if (size < 1 || size > kMost)
        fail(YOKE_E_VALUE, "%s: argument 'size' is %d; a process has 1 to %d ranks", call, size,
             kMost);
    GroupOptions how;
    if (timeout_s != 0) how.timeout_s = timeout_s;
    check_seconds(how.timeout_s, "timeout", call);
    Members members;
    const HostNode node = read_node();
    for (int32_t rank = 0; rank < size; ++rank) {
        Arrival arrival;
        arrival.rank = arrival.local_rank = rank;
        arrival.size = arrival.local_size = size;
        arrival.host = node.host;
        arrival.process = getpid();
        arrival.node = node.identity;
        arrival.memory = node.memory;
        arrival.address = "127.0.0.1";
        members.ranks.push_back(std::move(arrival));
    }
    members.number = number_of(next_name());
    members.store = std::make_shared<HashStore>();
    std::vector<std::future<Ref<Group>>> made;
    for (int32_t rank = 0; rank < size; ++rank)
        made.push_back(std::async(std::launch::async, [members, rank, how, call]() mutable {
            members.rank = rank;
            return Group::make(std::move(members), how, call);
        }));
    std::vector<Ref<Group>> groups;
    for (std::future<Ref<Group>> &each : made) groups.push_back(each.get());
    return groups;
}

Ref<Group> default_group(const char *call)
{
    const std::lock_guard lock(known.mutex);
    if (!known.group.present())
        fail(YOKE_E_STATE, "%s: this process has no group yet; call init first", call);
    return known.group;
}

void finalize_groups() noexcept
{
    Ref<Group> last;
    const std::lock_guard lock(known.mutex);
    std::swap(last, known.group);
}

}  // namespace yoke
