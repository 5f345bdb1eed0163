// Barriers that list who is missing.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/coalesce.h"
#include "core/comm/group.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kBarriers = "monitored", *kMonitored = "monitored_barrier";
// Of a barrier: how many have come, and how it has ended; "" where all had come, else the ranks that had not. And the
// first that nobody has given up, or one before it.
constexpr const char *kCome = "come", *kEnd = "end", *kNext = "next";

std::string key_at(uint64_t barrier, const std::string &what)
{
    return std::to_string(barrier) + "/" + what;
}

std::string key_at(uint64_t barrier, int32_t rank)
{
    return key_at(barrier, std::to_string(rank));
}

std::string list_of(const std::vector<int32_t> &ranks)
{
    std::string list;
    for (const int32_t rank : ranks) list += (list.empty() ? "" : ",") + std::to_string(rank);
    return list;
}

std::vector<int32_t> ranks_in(const std::string &list)
{
    std::vector<int32_t> ranks;
    if (list.empty()) return ranks;
    for (const std::string &each : split_list(list))
        if (const auto rank = parsed<int32_t>(each)) ranks.push_back(*rank);
    return ranks;
}

}  // namespace

// Which ends when the group fails, and when one more rank is heard to have died.
Group::BarrierWait Group::open_barrier()
{
    auto keys = std::make_shared<PrefixStore>(members_.store, kBarriers);
    if (members_.met) come_back_to(*members_.met);
    std::unique_lock lock = lock_here();
    check_usable(lock, kMonitored);
    std::erase_if(barriers_under_way_, [](const auto &each) { return each.expired(); });
    barriers_under_way_.push_back(keys);
    return {std::move(keys), count_dead()};
}

size_t Group::count_dead() const
{
    return static_cast<size_t>(std::ranges::count_if(
        has_left_, [](const auto &each) { return each.first >= 0 && !each.second; }));
}

bool Group::has_lost_more(size_t dead) const
{
    const std::lock_guard lock(mutex_);
    return count_dead() > dead && !cause_;
}

// Those that have died and have not come, and who else is not there; "" where none has.
std::string Group::describe_dead(uint64_t barrier, Store &keys) const
{
    std::string dead, missing;
    for (const int32_t peer : missing_at(barrier, keys)) {
        const std::lock_guard lock(mutex_);
        const auto gone = has_left_.find(peer);
        std::string &list = gone != has_left_.end() && !gone->second ? dead : missing;
        list +=
            (list.empty() ? "" : ", ") + yoke::describe(members_.ranks[static_cast<size_t>(peer)]);
    }
    return dead.empty() || missing.empty() ? dead : dead + "; not there yet: " + missing;
}

std::vector<int32_t> Group::missing_at(uint64_t barrier, Store &keys) const
{
    constexpr double kPatience = 0.1;
    const Deadline deadline = Deadline::after(kPatience);
    std::vector<int32_t> missing;
    for (const RankInfo &peer : members_.ranks)
        if (!keys.try_get(key_at(barrier, peer.rank), deadline)) missing.push_back(peer.rank);
    return missing;
}

// Each try has a number, and an end that stands for all: all have come to it, or the first whose patience ended tells
// who had not. Then those that wait on, and those that come later, meet at the next one.
void Group::monitored_barrier(double seconds)
{
    const auto check = [&] {
        Coalescing::check_closed(kMonitored);
        if (!(seconds >= 0))
            fail(YOKE_E_VALUE,
                 "monitored_barrier: argument 'timeout' is %g; it takes seconds, from 0", seconds);
    };
    or_refuse(check, Refused::kBarrier);
    forget_refused(Refused::kBarrier);
    const Deadline deadline = Deadline::after(seconds);
    uint64_t number = next_barrier();
    const StoreCall store_call(*this, kMonitored);
    std::vector<int32_t> never;  // of all tries of this call
    for (bool is_first = true;; is_first = false) {
        const std::vector<int32_t> missing = end_of_barrier(number, deadline);
        if (missing.empty()) return forget_barriers(number);
        std::erase_if(never, [&](int32_t rank) { return !std::ranges::count(missing, rank); });
        if (is_first) never = missing;
        if (deadline.has_passed()) fail_missing(never.empty() ? missing : never, deadline);
        number = barrier_behind(number);
    }
}

uint64_t Group::next_barrier()
{
    std::unique_lock lock = lock_here();
    check_usable(lock, kMonitored);
    return ++barriers_;
}

void Group::fail_missing(const std::vector<int32_t> &missing, Deadline deadline) const
{
    fail_late(kMonitored, describe_absent(missing), deadline);
}

// Who has not come until it ended.
std::vector<int32_t> Group::end_of_barrier(uint64_t number, Deadline deadline)
{
    bool has_come = false;
    for (;;) {
        if (const auto missing = await_barrier(number, has_come, deadline)) return *missing;
        Interruptible::check_here();
    }
}

// Nothing where another rank has died meanwhile, which may have come before.
std::optional<std::vector<int32_t>> Group::await_barrier(uint64_t number, bool &has_come,
                                                         Deadline deadline)
{
    const auto [keys, dead] = open_barrier();
    std::string absent;
    try {
        if (!std::exchange(has_come, true)) come_to_barrier(number, deadline);
        if (dead > 0 && !keys->try_get(key_at(number, kEnd), deadline))
            absent = describe_dead(number, *keys);
        if (absent.empty()) return ranks_in(keys->get(key_at(number, kEnd), deadline));
    } catch (const Interrupted &) {
        throw;
    } catch (const Error &error) {
        if (error.status() == YOKE_E_TIMEOUT) return give_up_barrier(number, deadline);
        if (have_all_come(number)) return std::vector<int32_t>();
        if (has_lost_more(dead)) return std::nullopt;
        check_table(kMonitored);
        await_cause(kMonitored);
        throw;
    }
    fail(YOKE_E_COMM,
         "monitored_barrier: it cannot end, since there died: %s; go on without them by shrink",
         absent.c_str());
}

// The last one ends it. By a view of its own, which goes on when a rank dies: nobody comes twice.
void Group::come_to_barrier(uint64_t number, Deadline deadline)
{
    PrefixStore keys(members_.store, kBarriers);
    const int64_t come = keys.add(key_at(number, kCome), 1, deadline);
    if (come == size()) (void)keys.set_once(key_at(number, kEnd), "", deadline);
    keys.set(key_at(number, rank()), "", deadline);
}

// Who is missing, unless another rank, or the last one that came, has ended it first.
std::vector<int32_t> Group::give_up_barrier(uint64_t number, Deadline deadline) const
try {
    constexpr double kPatience = 0.1;
    PrefixStore keys(members_.store, kBarriers);
    const std::string mine = list_of(missing_at(number, keys));
    const std::string stands =
        keys.set_once(key_at(number, kEnd), mine, Deadline::after(kPatience));
    if (stands == mine) keys.set(kNext, std::to_string(number + 1), Deadline::after(kPatience));
    return ranks_in(stands);
} catch (const Interrupted &) {
    throw;
} catch (const Error &) {  // it does not even answer for the table
    fail_late(kMonitored, describe_server(), deadline);
}

// Whoever comes to a barrier for the first time need not look at all that were given up.
uint64_t Group::barrier_behind(uint64_t number)
{
    constexpr double kPatience = 0.1;
    PrefixStore keys(members_.store, kBarriers);
    const auto told = keys.try_get(kNext, Deadline::after(kPatience));
    const uint64_t next = std::max(told ? parsed<uint64_t>(*told).value_or(0) : 0, number + 1);
    const std::lock_guard lock(mutex_);
    return barriers_ = std::max(barriers_, next);
}

// To a barrier that has ended, though this rank is told of what failed behind it first.
bool Group::have_all_come(uint64_t barrier) const noexcept
try {
    constexpr double kPatience = 0.1;
    PrefixStore keys(members_.store, kBarriers);
    const auto end = keys.try_get(key_at(barrier, kEnd), Deadline::after(kPatience));
    return end && end->empty();
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
    Store::Keys all;
    for (uint64_t number = first; number < before; ++number) {
        all.push_back(key_at(number, rank()));
        if (rank() == 0) all.insert(all.end(), {key_at(number, kCome), key_at(number, kEnd)});
    }
    PrefixStore(members_.store, kBarriers).remove_all(all, Deadline::after(kPatience));
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "monitored_barrier: %s", error.what());
}

}  // namespace yoke
