#include "core/comm/monitored_barrier.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/text.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kBarriers = "monitored", *kMonitored = "monitored_barrier";
// Keys of a barrier: how many have come, and how it has ended; "" where all had come, else the ranks that had not. And
// the first that nobody has given up, or one before it.
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
    return joined(ranks, ",", [](int32_t rank) { return std::to_string(rank); });
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

MonitoredBarrier::MonitoredBarrier(const Members &members, const GroupKeys &keys,
                                   const Departures &departures, Failure &failure,
                                   const CallQueue &calls, StoreCall &store_call)
    : members_(members),
      keys_(keys),
      departures_(departures),
      failure_(failure),
      calls_(calls),
      store_call_(store_call)
{
}

void MonitoredBarrier::wait(Deadline deadline)
{
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = ++last_;
    }
    const StoreCall::Scope scope(store_call_, kMonitored);
    std::vector<int32_t> never;  // of all tries of this call
    for (bool is_first = true;; is_first = false) {
        const std::vector<int32_t> missing = end_of(number, deadline);
        if (missing.empty()) return forget(number);
        std::erase_if(never, [&](int32_t rank) { return !std::ranges::count(missing, rank); });
        if (is_first) never = missing;
        if (deadline.has_passed())
            GroupKeys::raise_missing(kMonitored, describe_absent(never.empty() ? missing : never),
                                     deadline);
        number = number_behind(number);
    }
}

// The view ends when the group fails, and when one more rank is heard to have died.
MonitoredBarrier::View MonitoredBarrier::open()
{
    auto keys = std::make_shared<PrefixStore>(members_.store, kBarriers);
    if (members_.met) come_back_to(*members_.met);
    const size_t dead = failure_.add_view(keys, true, kMonitored);
    return {std::move(keys), dead};
}

// Returns who has not come until it ended.
std::vector<int32_t> MonitoredBarrier::end_of(uint64_t number, Deadline deadline)
{
    bool has_come = false;
    for (;;) {
        if (const auto missing = await(number, has_come, deadline)) return *missing;
        Interruptible::check_here();
    }
}

// Returns nothing where another rank has died meanwhile, which may have come before.
std::optional<std::vector<int32_t>> MonitoredBarrier::await(uint64_t number, bool &has_come,
                                                            Deadline deadline)
{
    const auto [keys, dead] = open();
    std::string absent;
    try {
        if (!std::exchange(has_come, true)) come_to(number, deadline);
        if (dead > 0 && !keys->try_get(key_at(number, kEnd), deadline))
            absent = describe_dead(number, *keys);
        if (absent.empty()) return ranks_in(keys->get(key_at(number, kEnd), deadline));
    } catch (const Interrupted &) {
        throw;
    } catch (const Error &error) {
        if (error.status() == YOKE_E_TIMEOUT) return give_up(number, deadline);
        if (have_all_come(number)) return std::vector<int32_t>();
        if (departures_.count_dead() > dead && !failure_.is_failed()) return std::nullopt;
        failure_.check_table(kMonitored);
        failure_.await(kMonitored);
        throw;
    }
    fail(YOKE_E_COMM,
         "monitored_barrier: it cannot end, since there died: %s; go on without them by shrink",
         absent.c_str());
}

// The last one ends it. By a view of its own, which goes on when a rank dies: nobody comes twice.
void MonitoredBarrier::come_to(uint64_t number, Deadline deadline)
{
    PrefixStore keys(members_.store, kBarriers);
    const int64_t come = keys.add(key_at(number, kCome), 1, deadline);
    if (come == members_.size()) (void)keys.set_once(key_at(number, kEnd), "", deadline);
    keys.set(key_at(number, members_.rank), "", deadline);
}

// Returns who is missing, unless another rank, or the last one that came, has ended it first.
std::vector<int32_t> MonitoredBarrier::give_up(uint64_t number, Deadline deadline) const
try {
    PrefixStore keys(members_.store, kBarriers);
    const std::string mine = list_of(missing_at(number, keys));
    const std::string stands = keys.set_once(key_at(number, kEnd), mine, GroupKeys::soon());
    if (stands == mine) keys.set(kNext, std::to_string(number + 1), GroupKeys::soon());
    return ranks_in(stands);
} catch (const Interrupted &) {
    throw;
} catch (const Error &) {  // it does not even answer for the table
    GroupKeys::raise_missing(kMonitored, keys_.describe_server(), deadline);
}

// Whoever comes to a barrier for the first time need not look at all that were given up.
uint64_t MonitoredBarrier::number_behind(uint64_t number)
{
    PrefixStore keys(members_.store, kBarriers);
    const auto told = keys.try_get(kNext, GroupKeys::soon());
    const uint64_t next = std::max(told ? parsed<uint64_t>(*told).value_or(0) : 0, number + 1);
    const std::lock_guard lock(mutex_);
    return last_ = std::max(last_, next);
}

std::vector<int32_t> MonitoredBarrier::missing_at(uint64_t number, Store &keys) const
{
    const Deadline deadline = GroupKeys::soon();
    std::vector<int32_t> missing;
    for (const RankInfo &peer : members_.ranks)
        if (!keys.try_get(key_at(number, peer.rank), deadline)) missing.push_back(peer.rank);
    return missing;
}

// Returns those that have died and have not come, and who else is not there; "" where none has.
std::string MonitoredBarrier::describe_dead(uint64_t number, Store &keys) const
{
    std::string dead, missing;
    for (const int32_t peer : missing_at(number, keys)) {
        const std::optional<bool> gone = departures_.has_gone(peer);
        std::string &list = gone && !*gone ? dead : missing;
        add_part(list, describe(members_.at(peer)));
    }
    return dead.empty() || missing.empty() ? dead : dead + "; not there yet: " + missing;
}

// Returns ranks that have not come, with what was refused in the place of their call.
std::string MonitoredBarrier::describe_absent(const std::vector<int32_t> &ranks) const
{
    const uint64_t number = calls_.next_number();
    const std::vector<std::string> barriers = keys_.refusals_of(ranks, Refused::kBarrier, number);
    const std::vector<std::string> others = keys_.refusals_of(ranks, Refused::kCollective, number);
    std::string list;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const std::string &told = barriers[i].empty() ? others[i] : barriers[i];
        list += (i ? ", " : "") + describe(members_.at(ranks[i])) +
                (told.empty() ? "" : ", whose call was refused: " + told);
    }
    return list;
}

// All may have come to a barrier that has ended, though this rank is told of what failed behind it first.
bool MonitoredBarrier::have_all_come(uint64_t number) const noexcept
{
    bool have_come = false;
    GroupKeys::attempt(nullptr, [&] {
        PrefixStore keys(members_.store, kBarriers);
        const auto end = keys.try_get(key_at(number, kEnd), GroupKeys::soon());
        have_come = end && end->empty();
    });
    return have_come;
}

// All ranks have come to this one, so that none looks at those before it. What fails stays there.
void MonitoredBarrier::forget(uint64_t before) noexcept
{
    constexpr double kToForget = 1;
    uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        first = std::exchange(kept_, std::max(kept_, before));
    }
    GroupKeys::attempt("monitored_barrier: ", [&] {
        Store::Keys all;
        for (uint64_t number = first; number < before; ++number) {
            all.push_back(key_at(number, members_.rank));
            if (members_.rank == 0)
                all.insert(all.end(), {key_at(number, kCome), key_at(number, kEnd)});
        }
        PrefixStore(members_.store, kBarriers).remove_all(all, Deadline::after(kToForget));
    });
}

}  // namespace yoke
