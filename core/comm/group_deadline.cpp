// What a group's ranks tell each other when they have waited in vain.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/group.h"

#include <algorithm>

namespace yoke {

namespace {

std::string missed_key(int32_t rank)
{
    return "misses/" + std::to_string(rank);
}

std::string refused_key(int32_t rank, Refused what)
{
    return std::string(kRefusedKeys[static_cast<size_t>(what)]) + "/" + std::to_string(rank);
}

// Whether a refusal stands only until a collective is made behind it: those have the same number on all ranks.
bool is_numbered(Refused what)
{
    return what == Refused::kCollective || what == Refused::kBarrier;
}

}  // namespace

// By rank, whom each misses that has waited in vain, and in which call.
std::map<int32_t, Missing> Group::who_misses_whom(double patience_s) const
{
    std::map<int32_t, Missing> told;
    try {
        members_.store->wait(gather_keys("misses", size()), Deadline::after(patience_s));
    } catch (const Error &) {  // some tell nothing
    }
    const Deadline deadline = Deadline::after(patience_s);
    for (int32_t each = 0; each < size(); ++each)
        if (const auto text = members_.store->try_get(missed_key(each), deadline))
            told[each] = Missing::decode(*text);
    return told;
}

// Whom this rank misses may itself wait for another one, and tells so when its own deadline passes: so the last in that
// chain is to blame, who tells nothing; or all of them, where the chain is a ring. Where nobody is missed for certain,
// as amid the elements of a collective, it is one of those that tell nothing; they may be several, as where a rank that
// is well is short of a processor.
Suspects Group::find_suspects(int32_t missed, const CurrentCall &current) const
{
    constexpr double kPatience = 0.1;
    members_.store->set(missed_key(rank()), Missing{missed, told_as(current)}.encode(),
                        Deadline::after(kPatience));
    const std::map<int32_t, Missing> told = who_misses_whom(kPatience);
    int32_t at = missed;
    for (auto each = told.begin(); at < 0 && each != told.end(); ++each) at = each->second.rank;
    std::vector<int32_t> chain;
    while (at >= 0) {
        if (const auto met = std::ranges::find(chain, at); met != chain.end()) {
            chain.erase(chain.begin(), met);
            std::ranges::rotate(chain, std::ranges::min_element(chain));
            Suspects ring{chain, {}, {}};
            for (const int32_t each : chain) ring.calls.push_back(told.at(each).call);
            return ring;
        }
        const auto next = told.find(at);
        if (next == told.end()) return {{at}, {}, refusal_of(at, current)};
        chain.push_back(at);
        at = next->second.rank;
    }
    Suspects silent;
    for (int32_t each = 0; each < size(); ++each)
        if (!told.contains(each)) silent.ranks.push_back(each);
    return silent;
}

// The others wait for a call that this rank has not made; of a failed group for a shrink alone.
void Group::note_refused(const char *why, Refused what) noexcept
try {
    constexpr double kPatience = 0.1;
    if (!is_here() || size() == 1 || (is_failed() && what != Refused::kShrink)) return;
    uint64_t number = 0;
    if (is_numbered(what)) {
        const std::lock_guard lock(mutex_);
        number = sequence_ + 1;
    }
    members_.store->set(refused_key(rank(), what), std::to_string(number) + " " + cut(why),
                        Deadline::after(kPatience));
    has_refused_[static_cast<size_t>(what)] = true;
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "the other ranks were not told of a call that was refused: %s",
        error.what());
}

// Another one is made instead.
void Group::forget_refused(Refused what) noexcept
try {
    constexpr double kPatience = 0.1;
    if (has_refused_[static_cast<size_t>(what)].exchange(false))
        members_.store->remove(refused_key(rank(), what), Deadline::after(kPatience));
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "%s", error.what());
}

std::string Group::refusal_of(int32_t rank, Refused what, uint64_t number, Deadline deadline) const
{
    const auto text = members_.store->try_get(refused_key(rank, what), deadline);
    const std::string front = std::to_string(number) + " ";
    return text && text->starts_with(front) ? text->substr(front.size()) : "";
}

// What was wrong with that rank's call in this one's place; "" where nothing is known.
std::string Group::refusal_of(int32_t rank, const CurrentCall &current) const
{
    constexpr double kPatience = 0.1;
    if (current.making) return "";
    const Deadline deadline = Deadline::after(kPatience);
    if (current.signature.op == YOKE_COMM_SEND)
        return refusal_of(rank, Refused::kMessage, 0, deadline);
    const uint64_t number = current.signature.sequence;
    const std::string collective = refusal_of(rank, Refused::kCollective, number, deadline);
    return collective.empty() ? refusal_of(rank, Refused::kBarrier, number, deadline) : collective;
}

// In place of the call that this rank makes next.
std::vector<std::string> Group::refusals_of(const std::vector<int32_t> &ranks, Refused what) const
{
    constexpr double kPatience = 0.1;
    const Deadline deadline = Deadline::after(kPatience);
    uint64_t number = 0;
    if (is_numbered(what)) {
        const std::lock_guard lock(mutex_);
        number = sequence_ + 1;
    }
    std::vector<std::string> told(ranks.size());
    try {
        for (size_t i = 0; i < ranks.size(); ++i)
            told[i] = refusal_of(ranks[i], what, number, deadline);
    } catch (const Error &) {  // the table does not answer, or has gone
    }
    return told;
}

// From a monitored barrier, with what was refused in its place.
std::string Group::describe_absent(const std::vector<int32_t> &ranks) const
{
    const std::vector<std::string> barriers = refusals_of(ranks, Refused::kBarrier);
    const std::vector<std::string> others = refusals_of(ranks, Refused::kCollective);
    std::string list;
    for (size_t i = 0; i < ranks.size(); ++i) {
        const std::string &told = barriers[i].empty() ? others[i] : barriers[i];
        list += (i ? ", " : "") + yoke::describe(members_.ranks[static_cast<size_t>(ranks[i])]) +
                (told.empty() ? "" : ", whose call was refused: " + told);
    }
    return list;
}

// Where not even the table answers, that of rank 0, *can_agree is false.
Cause Group::cause_of_lateness(int32_t missed, const CurrentCall &current, bool *can_agree) const
{
    Suspects suspects;
    try {
        suspects = find_suspects(missed, current);
    } catch (const std::exception &) {
        *can_agree = false;
        if (server() >= 0) suspects.ranks.push_back(server());
        if (missed >= 0 && missed != server()) suspects.ranks.push_back(missed);
    }
    return yoke::cause_of_lateness(current, suspects, members_.ranks);
}

}  // namespace yoke
