#include "core/comm/cause_of.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/text.h"
#include "core/comm/collective.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace yoke {

std::string told_as(const CurrentCall &current)
{
    if (current.making) return "the creation of the group";
    return describe(current.signature, current.from) +
           (current.line.empty() ? "" : " at " + current.line);
}

std::string Missing::encode() const
{
    return std::to_string(rank) + " " + cut(call) +
           (held_up_by.empty() ? "" : "\n" + cut(held_up_by));
}

Missing Missing::decode(std::string_view text)
{
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view rest = text.substr(std::min(space + 1, text.size()));
    const size_t line = std::min(rest.find('\n'), rest.size());
    return {parsed<int32_t>(text.substr(0, space)).value_or(-1), std::string(rest.substr(0, line)),
            std::string(rest.substr(std::min(line + 1, rest.size())))};
}

namespace {

const char *name_of_doing(const CurrentCall &current)
{
    if (current.making) return current.making;
    return collective_name(current.from < 0 ? current.signature.op : YOKE_COMM_RECV);
}

// Returns "call 7 of the group"; for send and recv "message 7 between the two ranks", because messages are counted
// apart, by pair.
std::string number_of(const CurrentCall &current)
{
    const auto number = static_cast<unsigned long long>(current.signature.sequence);
    return current.signature.op == YOKE_COMM_SEND
               ? format("message %llu between the two ranks", number)
               : format("call %llu of the group", number);
}

std::string mismatch(const yoke_comm_fault &fault, const CurrentCall &current, const RankInfo &self,
                     const RankInfo &other)
{
    if (!current.before.empty())
        return format(
            "%s: ranks do not agree on the order of their calls in coalesce: %s called %s before %s, but %s called %s first; all ranks must make the same calls in the same order",
            name_of_doing(current), describe(self).c_str(), told_as(current).c_str(),
            current.before.c_str(), describe(other).c_str(), describe(fault.theirs).c_str());
    return format(
        "%s: ranks do not agree on %s: %s called %s, and %s called %s (%s); all ranks must make the same calls in the same order",
        name_of_doing(current), difference(current.signature, fault.theirs).c_str(),
        describe(self).c_str(), told_as(current).c_str(), describe(other).c_str(),
        describe(fault.theirs).c_str(), number_of(current).c_str());
}

}  // namespace

Cause cause_of(const yoke_comm_fault &fault, yoke_status status, const std::string &engine_text,
               const CurrentCall &current, const RankInfo &self, const std::vector<RankInfo> &ranks)
{
    const bool is_known = fault.rank >= 0 && fault.rank < std::ssize(ranks);
    const RankInfo &other = is_known ? ranks[static_cast<size_t>(fault.rank)] : self;
    const char *call = name_of_doing(current);
    if (is_known && fault.kind == YOKE_COMM_FAULT_MISMATCH)
        return {YOKE_E_COMM, mismatch(fault, current, self, other)};
    if (is_known && fault.kind == YOKE_COMM_FAULT_DIED)
        return {YOKE_E_COMM,
                format("%s: %s died: the connection ended while other ranks waited for it in %s",
                       call, describe(other).c_str(), told_as(current).c_str())};
    if (is_known && fault.kind == YOKE_COMM_FAULT_LATE && other.rank != self.rank)
        return cause_of(current, Suspects{{fault.rank}, {}, {}}, ranks);
    return {status, format("%s: %s failed in %s: %s", call, describe(self).c_str(),
                           told_as(current).c_str(), engine_text.c_str())};
}

namespace {

// Returns a list of ranks for people, with at most 8 names: "rank 1 (host a, process 7), rank 2 (host a, process 8)
// and 30 more".
std::string list(const std::vector<int32_t> &which, const std::vector<RankInfo> &ranks)
{
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t i = 0; i < which.size() && i < kMost; ++i)
        text += (i ? ", " : "") + describe(ranks[static_cast<size_t>(which[i])]);
    return which.size() > kMost ? text + format(" and %zu more", which.size() - kMost) : text;
}

Cause ring_of(const CurrentCall &current, const Suspects &ring, const std::vector<RankInfo> &ranks)
{
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t i = 0; i < ring.ranks.size() && i < kMost; ++i)
        text += (i ? ", " : "") + describe(ranks[static_cast<size_t>(ring.ranks[i])]) + " in " +
                ring.calls[i];
    if (ring.ranks.size() > kMost) text += format(" and %zu more", ring.ranks.size() - kMost);
    return {
        YOKE_E_TIMEOUT,
        format(
            "%s: timed out; %zu ranks waited in a ring, each for the next rank: %s; change the order of their calls, or put the calls in one coalesce",
            name_of_doing(current), ring.ranks.size(), text.c_str())};
}

// Returns the cause of a timeout if a call is behind another group's call on the stream of a device.
Cause held_up(const CurrentCall &current, const Suspects &suspects,
              const std::vector<RankInfo> &ranks)
{
    const auto &[rank, call] = *suspects.held_up.begin();
    return {
        YOKE_E_TIMEOUT,
        format(
            "%s: timed out; all ranks arrived at %s, but on %s the call waits on the stream behind %s of another group, and not on all ranks; use the groups in the same order on all ranks",
            name_of_doing(current), told_as(current).c_str(),
            describe(ranks[static_cast<size_t>(rank)]).c_str(), call.c_str())};
}

}  // namespace

Cause cause_of(const CurrentCall &current, const Suspects &suspects,
               const std::vector<RankInfo> &ranks)
{
    if (!suspects.calls.empty()) return ring_of(current, suspects, ranks);
    if (suspects.ranks.empty() && !suspects.held_up.empty())
        return held_up(current, suspects, ranks);
    const std::string who = list(suspects.ranks, ranks), call = told_as(current);
    if (suspects.ranks.empty())
        return {
            YOKE_E_TIMEOUT,
            format(
                "%s: timed out; all ranks arrived at %s, but did not finish: the ranks wait for each other, or the timeout is too short for the amount of data",
                name_of_doing(current), call.c_str())};
    if (!suspects.refused.empty())
        return {
            YOKE_E_TIMEOUT,
            format(
                "%s: timed out; %s did not arrive at %s: the call in its place was refused: %s; if the script caught this error, the rank then stopped, got stuck, or made no other call",
                name_of_doing(current), who.c_str(), call.c_str(), suspects.refused.c_str())};
    if (suspects.ranks.size() == 1)
        return {
            YOKE_E_TIMEOUT,
            format(
                "%s: timed out; %s did not arrive at %s: the rank is stopped, is stuck, or never made its call; check whether the rank raised an error",
                name_of_doing(current), who.c_str(), call.c_str())};
    return {
        YOKE_E_TIMEOUT,
        format(
            "%s: timed out; one of several ranks did not arrive at %s, or did not finish it: %s; check which of these ranks is stopped or stuck",
            name_of_doing(current), call.c_str(), who.c_str())};
}

Cause cause_of(const CurrentCall &current, const RankInfo &left, const std::string &how)
{
    constexpr const char *kPlain = "the rank released the group, or its script ended";
    return {YOKE_E_COMM,
            format("%s: %s has left the group: %s, while other ranks waited for it in %s",
                   name_of_doing(current), describe(left).c_str(),
                   how.empty() ? kPlain : how.c_str(), told_as(current).c_str())};
}

Cause cause_of(const CurrentCall &current, const RankInfo &server, bool has_left,
               const RankInfo &other)
{
    return {
        YOKE_E_COMM,
        format(
            "%s: %s, which keeps the store of the job, %s; then the connection to %s ended while this rank waited for it in %s: that rank gave up the group, or died",
            name_of_doing(current), describe(server).c_str(), has_left ? "has left" : "died",
            describe(other).c_str(), told_as(current).c_str())};
}

Cause cause_of(const RankInfo &lost, const std::string &what)
{
    return {YOKE_E_COMM, describe(lost) + " " + what, false, true};
}

std::string no_memory_text(const char *call, const RankInfo &self, uint64_t bytes,
                           const std::string &engine_text)
{
    return format("%s: %s could not allocate %llu bytes of memory that peers reach: %s", call,
                  describe(self).c_str(), static_cast<unsigned long long>(bytes),
                  engine_text.c_str());
}

namespace {

Cause cause_of(const Error &error, const RankInfo &self, const char *call)
{
    if (error.status() == YOKE_E_TIMEOUT || error.status() == YOKE_E_COMM)
        return Cause{error.status(), error.what()}.of(error.call());
    const std::string_view text = error.call() == call ? error.text() : error.what();
    return Cause{error.status(),
                 format("%s: %s: ", call, describe(self).c_str()) + std::string(text)}
        .of(call);
}

}  // namespace

Cause cause_of(const std::exception_ptr &caught, const RankInfo &self, const char *call)
try {
    std::rethrow_exception(caught);
} catch (const Interrupted &) {
    return Cause{YOKE_E_CANCELLED,
                 format("%s: %s was interrupted while it waited", call, describe(self).c_str())}
        .of(call);
} catch (const Error &error) {
    return cause_of(error, self, call);
} catch (const std::bad_alloc &) {
    return cause_of(Error(YOKE_E_OOM, kNoMemoryText), self, call);
} catch (const std::exception &error) {
    return cause_of(Error(YOKE_E_INTERNAL, error.what()), self, call);
}

}  // namespace yoke
