#include "core/comm/local_groups.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/comm/init.h"
#include "core/rendezvous/node.h"
#include "core/store/store_hash.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

namespace yoke {

namespace {

// Makes the groups of all ranks at once, each in its own thread, rank 0 in the caller's. Raises YOKE_E_OOM if the
// system gives no thread. `devices`: a device per rank, or empty.
std::vector<Ref<Group>> made_at_once(const Members &members, const GroupOptions &how,
                                     const std::vector<Device *> &devices, const char *call)
{
    const Deadline deadline = Deadline::after(how.init_timeout_s);
    const auto make = [&](int32_t rank) {
        Members own = members;
        own.rank = rank;
        GroupOptions mine = how;
        if (!devices.empty()) mine.device = devices[static_cast<size_t>(rank)];
        return Group::make(std::move(own), mine, deadline, call);
    };
    const auto count = static_cast<size_t>(members.size() - 1);
    std::vector<std::future<Ref<Group>>> others;
    others.reserve(count);
    struct Threads : std::vector<std::thread> {
        ~Threads()
        {
            for (std::thread &each : *this) each.join();
        }
    } threads;
    threads.reserve(count);
    for (int32_t rank = 1; rank < members.size(); ++rank) {
        std::packaged_task<Ref<Group>()> task([make, rank] { return make(rank); });
        others.push_back(task.get_future());
        std::thread thread;
        const std::string why = start_thread(thread, std::move(task));
        if (!why.empty()) {
            const std::string text = format(
                "%s: the system cannot start a thread for rank %d of %d: %s; check ulimit -u, or ask for fewer ranks",
                call, rank, members.size(), why.c_str());
            // Without the abort, the started threads would wait for the missing thread.
            members.store->abort(YOKE_E_OOM, text, std::string_view(call).size());
            throw Error(YOKE_E_OOM, text);
        }
        threads.push_back(std::move(thread));
    }
    std::vector<Ref<Group>> groups{make(0)};
    for (std::future<Ref<Group>> &each : others) groups.push_back(each.get());
    return groups;
}

// Returns the members of a new group whose ranks are threads of this process, with a store in the process's memory.
Members members_here(int32_t size)
{
    Members members;
    const HostNode node = read_node();
    for (int32_t rank = 0; rank < size; ++rank) {
        RankInfo info;
        info.rank = info.local_rank = rank;
        info.size = info.local_size = size;
        info.host = node.host;
        info.process = getpid();
        info.node = node.identity;
        info.memory = node.memory;
        info.address = "127.0.0.1";
        members.ranks.push_back(std::move(info));
    }
    static std::atomic<int> made{0};
    members.number = number_of_group(describe_process(members.ranks[0]) + " group/" +
                                     std::to_string(made.fetch_add(1)));
    members.store = std::make_shared<HashStore>();
    return members;
}

GroupOptions options_here(double timeout_s, const char *call)
{
    GroupOptions how;
    if (timeout_s != 0) how.timeout_s = timeout_s;
    check_seconds(how.timeout_s, "timeout", call);
    return how;
}

void check_devices(const std::vector<Device *> &devices, const char *call)
{
    if (devices.empty() || devices.size() > YOKE_MAX_RANKS)
        fail_in(call, YOKE_E_VALUE,
                "argument 'devices' has %zu devices; a process has 1 to %d ranks", devices.size(),
                YOKE_MAX_RANKS);
    for (size_t i = 0; i < devices.size(); ++i) {
        check_usable(*devices[i]);
        if (devices[i]->host)
            fail_in(
                call, YOKE_E_VALUE,
                "argument 'devices' has %s, whose ranks are threads; give this device alone, with a size",
                devices[i]->name.c_str());
        if (devices[i]->backend != devices[0]->backend)
            fail_in(call, YOKE_E_VALUE,
                    "argument 'devices' has %s and %s; give devices of one kind",
                    devices[0]->name.c_str(), devices[i]->name.c_str());
        if (std::ranges::count(devices, devices[i]) > 1)
            fail_in(call, YOKE_E_VALUE,
                    "argument 'devices' has %s twice; give each rank its own device",
                    devices[i]->name.c_str());
    }
}

}  // namespace

std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call)
{
    if (size < 1 || size > YOKE_MAX_RANKS)
        fail_in(call, YOKE_E_VALUE, "argument 'size' is %d; a process has 1 to %d ranks", size,
                YOKE_MAX_RANKS);
    GroupOptions how = options_here(timeout_s, call);
    how.backend = kHostKind;
    return made_at_once(members_here(size), how, {}, call);
}

std::vector<Ref<Group>> init_devices(const std::vector<Device *> &devices, double timeout_s,
                                     const char *call)
{
    check_devices(devices, call);
    GroupOptions how = options_here(timeout_s, call);
    how.is_one_of_several = true;
    return made_at_once(members_here(static_cast<int32_t>(devices.size())), how, devices, call);
}

}  // namespace yoke
