// Leaving a rendezvous: rank 0's process keeps the store until the other ranks have read the store.
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/rendezvous/rendezvous.h"

#include <unistd.h>

#include <utility>

namespace yoke {

namespace {

struct Served {
    Mutex mutex{LockRank::kOther};
    pid_t process = 0;
    std::vector<std::weak_ptr<StoreServer>> servers;
};
Served &served = immortal<Served>();

void note_served(const std::shared_ptr<StoreServer> &server)
{
    const std::lock_guard lock(served.mutex);
    if (std::exchange(served.process, getpid()) != getpid()) served.servers.clear();
    std::erase_if(served.servers, [](const auto &each) { return each.expired(); });
    served.servers.push_back(server);
}

constexpr double kFarewell = 5;  // seconds

struct Leave {
    pid_t process = getpid();
    double farewell_s = kFarewell;

    void operator()(const Rendezvous *met) const
    {
        if (met->server && process == getpid())
            met->server->wait_until_left(Deadline::after(farewell_s));
        delete met;
    }
};

}  // namespace

std::shared_ptr<const Rendezvous> hold(Rendezvous met)
{
    if (met.server) note_served(met.server);
    return {new Rendezvous(std::move(met)), Leave()};
}

void go_on_from(const Rendezvous &met, const std::vector<int32_t> &ranks)
{
    if (met.server) met.server->excuse(ranks);
}

void come_back_to(const Rendezvous &met)
{
    if (met.server) met.server->expect_all();
}

void leave_soon(const std::shared_ptr<const Rendezvous> &met) noexcept
{
    constexpr double kSoon = 0.15;
    Leave *const leave = std::get_deleter<Leave>(met);
    if (leave && met.use_count() == 1) leave->farewell_s = kSoon;
}

void give_up(const std::shared_ptr<const Rendezvous> &met) noexcept
{
    for (const auto &each : {met->server, met->doorkeeper})
        if (each) each->leave_newcomers();
    leave_soon(met);
}

void leave_all_rendezvous(double seconds) noexcept
{
    std::vector<std::weak_ptr<StoreServer>> servers;
    {
        const std::lock_guard lock(served.mutex);
        if (served.process == getpid()) servers = served.servers;
    }
    const Deadline deadline = Deadline::after(seconds);
    for (const std::weak_ptr<StoreServer> &each : servers)
        if (const std::shared_ptr<StoreServer> server = each.lock())
            server->wait_until_left(deadline);
}

}  // namespace yoke
