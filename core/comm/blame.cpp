#include "core/comm/blame.h"

#include "core/base/error.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

namespace yoke {

Cause Blame::cause_of(const EngineFailure &failure, const CurrentCall &current,
                      bool *can_agree) const
{
    const yoke_comm_fault &fault = failure.fault;
    const int32_t server = departures_.server();
    if (fault.kind == YOKE_COMM_FAULT_LATE && fault.rank != members_.rank)
        return yoke::cause_of(current, suspects_or_server(fault.rank, current, can_agree),
                              members_.ranks);
    if (const std::optional<std::string> how = how_it_left(fault))
        return yoke::cause_of(current, members_.at(fault.rank), *how);
    const std::optional<bool> server_left = departures_.has_gone(server);
    if (fault.kind == YOKE_COMM_FAULT_DIED && server_left && !departures_.has_gone(fault.rank))
        return yoke::cause_of(current,
                              server < 0 ? members_.met->ranks.front() : members_.at(server),
                              *server_left, members_.at(fault.rank));
    return yoke::cause_of(fault, failure.status, failure.text, current, members_.self(),
                          members_.ranks);
}

// Publishes the missed rank, and returns the ranks to blame for a deadline. The missed rank may itself wait for
// another rank, and publishes this at its own deadline. So the last rank of the chain, which publishes no message, is
// to blame. If the chain is a circle, all its ranks are to blame. If no rank is certainly missed, as amid the
// elements of a collective, the suspects are all ranks without a message. There may be several suspects, for example
// if a healthy rank is short of a processor.
Suspects Blame::find_suspects(int32_t missed, const CurrentCall &current) const
{
    const std::map<int32_t, Missing> told =
        keys_.exchange_missing({missed, told_as(current), current.held_up_by});
    int32_t at = missed;
    for (auto each = told.begin(); at < 0 && each != told.end(); ++each) at = each->second.rank;
    std::vector<int32_t> chain;
    while (at >= 0) {
        if (const auto met = std::ranges::find(chain, at); met != chain.end()) {
            chain.erase(chain.begin(), met);
            std::rotate(chain.begin(), std::ranges::min_element(chain), chain.end());
            Suspects ring{chain, {}, {}};
            for (const int32_t each : chain) ring.calls.push_back(told.at(each).call);
            return ring;
        }
        const auto next = told.find(at);
        if (next == told.end()) return {{at}, {}, refusal_in(at, current)};
        chain.push_back(at);
        at = next->second.rank;
    }
    Suspects silent;
    for (int32_t each = 0; each < members_.size(); ++each)
        if (!told.contains(each)) silent.ranks.push_back(each);
    for (const auto &[rank, each] : told)
        if (!each.held_up_by.empty()) silent.held_up[rank] = each.held_up_by;
    return silent;
}

// Returns find_suspects(). If the store does not answer, sets *can_agree to false, and returns the rank that keeps
// the store and the missed rank.
Suspects Blame::suspects_or_server(int32_t missed, const CurrentCall &current,
                                   bool *can_agree) const
try {
    return find_suspects(missed, current);
} catch (const std::exception &) {
    *can_agree = false;
    Suspects suspects;
    const int32_t server = departures_.server();
    if (server >= 0) suspects.ranks.push_back(server);
    if (missed >= 0 && missed != server) suspects.ranks.push_back(missed);
    return suspects;
}

// Returns why the call that `rank` made in place of the current call was refused. Returns "" if unknown, or if the
// group is still being made.
std::string Blame::refusal_in(int32_t rank, const CurrentCall &current) const
{
    if (current.making) return "";
    const Deadline deadline = GroupKeys::soon();
    if (current.signature.op == YOKE_COMM_SEND)
        return keys_.refusal_of(rank, Refused::kMessage, 0, deadline);
    const uint64_t number = current.signature.sequence;
    const std::string told = keys_.refusal_of(rank, Refused::kCollective, number, deadline);
    return told.empty() ? keys_.refusal_of(rank, Refused::kBarrier, number, deadline) : told;
}

// Returns how the faulty rank's process ended, as published; "" if the rank left and published no ending. Returns
// null for other faults, and if the rank has not left. If the store does not answer, waits a short time for the
// rank's goodbye message or end.
std::optional<std::string> Blame::how_it_left(const yoke_comm_fault &fault) const noexcept
{
    constexpr std::chrono::milliseconds kToBeHeard{1000};
    if (fault.kind != YOKE_COMM_FAULT_DIED || fault.rank < 0) return std::nullopt;
    try {
        if (auto told = keys_.how_it_left(fault.rank)) return told;
    } catch (const Error &error) {  // the watch thread soon reports an unreachable store
        const bool is_gone = error.status() == YOKE_E_COMM && departures_.server() >= 0;
        departures_.await_any({fault.rank, departures_.server()},
                              is_gone ? kToBeHeard : GroupKeys::kSoon);
    } catch (const std::exception &) {  // no memory to ask
    }
    return departures_.has_gone(fault.rank).value_or(false) ? std::optional(std::string())
                                                            : std::nullopt;
}

// Returns the first of these ranks known to have gone, or -1. If no rank is known and `has_died` is false, asks the
// store for ranks that left with a goodbye message.
int32_t Blame::find_gone(std::span<const int32_t> ranks, bool has_died) const noexcept
{
    for (const int32_t each : ranks)
        if (const std::optional<bool> gone = departures_.has_gone(each);
            gone && !(has_died && *gone))
            return each;
    int32_t left = -1;
    if (!has_died) GroupKeys::attempt(nullptr, [&] { left = keys_.find_left(ranks); });
    return left;  // if the store is out of reach, the watch thread reports it
}

}  // namespace yoke
