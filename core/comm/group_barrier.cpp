// Barriers that list who is missing.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/group.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kBarriers = "monitored", *kMonitored = "monitored_barrier";

}  // namespace

// Which ends when the group fails, and when one more rank is heard to have died.
Group::BarrierWait Group::open_barrier()
{
    auto keys = std::make_shared<PrefixStore>(members_.store, kBarriers);
    std::unique_lock lock = lock_here();
    check_usable(lock, kMonitored);
    std::erase_if(barriers_under_way_, [](const auto &each) { return each.expired(); });
    barriers_under_way_.push_back(keys);
    return {std::move(keys), count_dead()};
}

size_t Group::count_dead() const
{
    return static_cast<size_t>(
        std::ranges::count(has_left_, false, [](const auto &each) { return each.second; }));
}

bool Group::has_lost_more(size_t dead) const
{
    const std::lock_guard lock(mutex_);
    return count_dead() > dead && !cause_;
}

// Those that have died and have not come, and who else is not there; "" where none has.
std::string Group::describe_dead(uint64_t barrier, Store &keys) const
{
    constexpr double kPatience = 0.1;
    const Deadline deadline = Deadline::after(kPatience);
    std::string dead, missing;
    for (const Arrival &peer : members_.ranks) {
        if (keys.try_get(format("%llu/%d", static_cast<unsigned long long>(barrier), peer.rank),
                         deadline))
            continue;
        const std::lock_guard lock(mutex_);
        const auto gone = has_left_.find(peer.rank);
        std::string &list = gone != has_left_.end() && !gone->second ? dead : missing;
        list += (list.empty() ? "" : ", ") + yoke::describe(peer);
    }
    return dead.empty() || missing.empty() ? dead : dead + "; not there yet: " + missing;
}

void Group::monitored_barrier(double seconds)
{
    const Deadline deadline = Deadline::after(seconds);
    uint64_t number = 0;
    {
        std::unique_lock lock = lock_here();
        check_usable(lock, kMonitored);
        number = ++barriers_;
    }
    const Meeting meeting(*this, kMonitored);
    while (!await_barrier(number, deadline)) Interruptible::check_here();
    forget_barriers(number);
}

// False where another rank has died meanwhile, which may have come before.
bool Group::await_barrier(uint64_t number, Deadline deadline)
{
    const auto [keys, dead] = open_barrier();
    const std::string name = std::to_string(number);
    std::string absent;
    try {
        keys->set(name + "/" + std::to_string(rank()), "", deadline);
        if (dead > 0) absent = describe_dead(number, *keys);
        if (absent.empty()) (void)gather(*keys, name, "", deadline, kMonitored);
    } catch (const Interrupted &) {
        throw;
    } catch (const Error &error) {
        if (error.status() == YOKE_E_TIMEOUT) throw;
        if (have_all_come(number)) return true;
        if (has_lost_more(dead)) return false;
        await_cause(kMonitored);
        throw;
    }
    if (absent.empty()) return true;
    fail(YOKE_E_COMM,
         "monitored_barrier: it cannot end, since there died: %s; go on without them by shrink",
         absent.c_str());
}

// To a barrier that has ended, though this rank is told of what failed behind it first.
bool Group::have_all_come(uint64_t barrier) const noexcept
try {
    constexpr double kPatience = 0.1;
    PrefixStore keys(members_.store, kBarriers);
    const Deadline deadline = Deadline::after(kPatience);
    return std::ranges::all_of(
        gather_keys(std::to_string(barrier), size()),
        [&](const std::string &key) { return keys.try_get(key, deadline).has_value(); });
} catch (const std::exception &) {  // the table has gone
    return false;
}

// What the group is about to learn.
void Group::await_cause(const char *call)
{
    constexpr std::chrono::milliseconds kPatience{1000};
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return cause_.has_value(); });
    check_usable(lock, call);
}

// All ranks have come to this one, so that none looks at those before it. What fails stays there.
void Group::forget_barriers(uint64_t before) noexcept
try {
    constexpr double kPatience = 1;
    uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        first = std::exchange(kept_barrier_, std::max(kept_barrier_, before));
    }
    PrefixStore keys(members_.store, kBarriers);
    for (uint64_t number = first; number < before; ++number)
        keys.remove(std::to_string(number) + "/" + std::to_string(rank()),
                    Deadline::after(kPatience));
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "monitored_barrier: %s", error.what());
}

}  // namespace yoke
