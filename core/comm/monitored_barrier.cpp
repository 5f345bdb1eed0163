#include "core/comm/monitored_barrier.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/text.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kMonitored = "monitored_barrier";

}  // namespace

MonitoredBarrier::MonitoredBarrier(const Members &members, const GroupKeys &keys,
                                   const Departures &departures, Failure &failure,
                                   const CallQueue &calls, StoreCall &store_call)
    : members_(members),
      keys_(keys),
      departures_(departures),
      failure_(failure),
      calls_(calls),
      store_call_(store_call),
      barriers_(members)
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
    std::vector<int32_t> never;  // missing in all tries of this call
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

// Opens a view of the store, which ends when the group fails, and when another rank's death is reported. Returns the
// view and the number of ranks dead before.
MonitoredBarrier::View MonitoredBarrier::open()
{
    std::shared_ptr<Store> keys = barriers_.view();
    if (members_.met) come_back_to(*members_.met);
    const size_t dead = failure_.add_view(keys, true, kMonitored);
    return {std::move(keys), dead};
}

// Waits for the end of the try. Returns the ranks missing at the end; an empty list if all ranks joined.
std::vector<int32_t> MonitoredBarrier::end_of(uint64_t number, Deadline deadline)
{
    bool has_come = false;
    for (;;) {
        if (const auto missing = await(number, has_come, deadline)) return *missing;
        Interruptible::check_here();
    }
}

// Joins the try at the first call, waits for the end, and returns the missing ranks. At the deadline, gives up the
// try. Raises YOKE_E_COMM if dead ranks never joined. Returns null if another rank dies during the wait, because the
// dead rank may have joined before; the caller then waits again.
std::optional<std::vector<int32_t>> MonitoredBarrier::await(uint64_t number, bool &has_come,
                                                            Deadline deadline)
{
    const auto [keys, dead] = open();
    std::string absent;
    try {
        if (!std::exchange(has_come, true)) barriers_.come_to(number, deadline);
        if (dead > 0 && !barriers_.has_ended(number, *keys, deadline))
            absent = describe_dead(number, *keys);
        if (absent.empty()) return barriers_.await_end(number, *keys, deadline);
    } catch (const Interrupted &) {
        throw;
    } catch (const Error &error) {
        if (error.status() == YOKE_E_TIMEOUT) return give_up(number, deadline);
        // All ranks may have come, although a failure behind the barrier reached this rank first.
        if (barriers_.have_all_come(number)) return std::vector<int32_t>();
        if (departures_.count_dead() > dead && !failure_.is_failed()) return std::nullopt;
        failure_.check_table(kMonitored);
        failure_.await(kMonitored);
        throw;
    }
    fail(YOKE_E_COMM,
         "monitored_barrier: cannot end, because ranks died: %s; call shrink to go on without them",
         absent.c_str());
}

// Ends the try without the missing ranks. Returns the missing ranks, as published by the first rank that ended the
// try; returns no ranks if the last rank has joined meanwhile. Raises YOKE_E_TIMEOUT if the store does not answer.
std::vector<int32_t> MonitoredBarrier::give_up(uint64_t number, Deadline deadline) const
try {
    return barriers_.give_up(number);
} catch (const Interrupted &) {
    throw;
} catch (const Error &) {  // the store does not answer at all
    GroupKeys::raise_missing(kMonitored, keys_.describe_server(), deadline);
}

// Returns the number of the next try, and notes it as this rank's last. A rank at its first barrier skips all tries
// that were given up.
uint64_t MonitoredBarrier::number_behind(uint64_t number)
{
    const uint64_t next = std::max(barriers_.next(), number + 1);
    const std::lock_guard lock(mutex_);
    return last_ = std::max(last_, next);
}

// Returns a text with the ranks that died before joining, and the other missing ranks; "" if no missing rank has
// died.
std::string MonitoredBarrier::describe_dead(uint64_t number, Store &keys) const
{
    std::string dead, missing;
    for (const int32_t peer : barriers_.missing_at(number, keys)) {
        const std::optional<bool> gone = departures_.has_gone(peer);
        std::string &list = gone && !*gone ? dead : missing;
        add_part(list, describe(members_.at(peer)));
    }
    return dead.empty() || missing.empty() ? dead
                                           : dead + "; ranks that did not arrive yet: " + missing;
}

// Returns a text with the missing ranks, and the reasons of their refused calls.
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

// Removes this rank's keys of the tries before `before`. All ranks have joined this try, so no rank looks at earlier
// tries. After an error, the keys stay.
void MonitoredBarrier::forget(uint64_t before) noexcept
{
    uint64_t first = 0;
    {
        const std::lock_guard lock(mutex_);
        first = std::exchange(kept_, std::max(kept_, before));
    }
    barriers_.forget(first, before);
}

}  // namespace yoke
