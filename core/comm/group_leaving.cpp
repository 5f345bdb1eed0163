// How a rank that lets its group go tells the others, and how they ask.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/ending.h"
#include "core/comm/group.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace yoke {

namespace {

constexpr const char *kLeft = "left";

std::string left_key(int32_t rank)
{
    return std::string(kLeft) + "/" + std::to_string(rank);
}

}  // namespace

// Before the others see its connections end. Of a group that has failed nobody asks.
void Group::say_left() noexcept
try {
    constexpr double kPatience = 0.1;
    if (size() == 1 || !is_made() || is_failed() || has_said_left_.exchange(true)) return;
    const Deadline deadline = Deadline::after(kPatience);
    members_.store->set(left_key(rank()), ending(), deadline);
    if (members_.store->add(kLeft, 1, deadline) != size()) return;
    Store::Keys all = gather_keys(kLeft, size());  // nobody is there who would ask
    all.emplace_back(kLeft);
    for (const char *key : kRefusedKeys)
        std::ranges::copy(gather_keys(key, size()), std::back_inserter(all));
    members_.store->remove_all(all, deadline);
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "a rank left its group, and could not tell the others: %s", error.what());
}

// With the table its keeper has gone, whose farewell, or end, is about to be heard.
std::optional<std::string> Group::why_it_left(const yoke_comm_fault &fault) const noexcept
{
    constexpr std::chrono::milliseconds kToAnswer{100}, kToBeHeard{1000};
    if (fault.kind != YOKE_COMM_FAULT_DIED || fault.rank < 0) return std::nullopt;
    try {
        const Deadline deadline = Deadline::after(std::chrono::duration<double>(kToAnswer).count());
        if (auto told = members_.store->try_get(left_key(fault.rank), deadline)) return told;
    } catch (const Error &error) {  // where it is out of reach the watch thread is about to say so
        std::unique_lock lock(mutex_);
        const bool is_gone = error.status() == YOKE_E_COMM && server() >= 0;
        const auto patience = is_gone ? kToBeHeard : kToAnswer;
        changed_.wait_for(lock, patience, [&] {
            return has_left_.contains(fault.rank) || has_left_.contains(server());
        });
    } catch (const std::exception &) {  // no memory to ask
    }
    return has_gone(fault.rank).value_or(false) ? std::optional(std::string()) : std::nullopt;
}

// Whether it was heard to have gone, and with a farewell.
std::optional<bool> Group::has_gone(int32_t rank) const noexcept
{
    const std::lock_guard lock(mutex_);
    const auto gone = has_left_.find(rank);
    return gone == has_left_.end() ? std::nullopt : std::optional(gone->second);
}

// The table is asked for those that have gone with a farewell: each time for how many, and only where there are some
// for each.
int32_t Group::find_gone(std::span<const int32_t> ranks, bool has_died) const noexcept
try {
    constexpr double kToAnswer = 0.1;
    for (const int32_t each : ranks)
        if (const std::optional<bool> gone = has_gone(each); gone && !(has_died && *gone))
            return each;
    if (has_died) return -1;
    const Deadline deadline = Deadline::after(kToAnswer);
    if (!members_.store->try_get(kLeft, deadline)) return -1;
    for (const int32_t each : ranks)
        if (members_.store->try_get(left_key(each), deadline)) return each;
    return -1;
} catch (const std::exception &) {  // the table is out of reach, of which the watch thread tells
    return -1;
}

}  // namespace yoke
