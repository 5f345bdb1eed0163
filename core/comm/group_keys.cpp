#include "core/comm/group_keys.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kLeft = "left";
constexpr const char *kMadeKey = "made";  // finished ranks; absent after the last rank

std::string key_of(const char *name, int32_t rank)
{
    return std::string(name) + "/" + std::to_string(rank);
}

std::string refused_key(int32_t rank, Refused what)
{
    return key_of(kRefusedKeys[static_cast<size_t>(what)], rank);
}

std::string making_key(int gathered)
{
    return "init/" + std::to_string(gathered);
}

}  // namespace

void GroupKeys::log_failed_attempt(const char *what, const std::exception &error) noexcept
{
    if (what) log(LogLevel::kInfo, "%s%s", what, error.what());
}

// ---- Why the group failed ---------------------------------------------------------------------------------------

Cause GroupKeys::agree(Cause mine, double timeout_s) const noexcept
{
    attempt("the ranks of a group could not agree on the cause of its failure: ", [&] {
        mine = Cause::decode(
            members_.store->set_once(kCauseKey, mine.encode(), Deadline::after(timeout_s)));
    });
    return mine;
}

Cause GroupKeys::agree_in(Store &store, const Cause &mine) noexcept
{
    constexpr double kToAgree = 1;
    std::string stands = mine.encode();
    attempt("the cause of this rank's failure could not be sent to the other ranks: ",
            [&] { stands = store.set_once(kCauseKey, stands, Deadline::after(kToAgree)); });
    return Cause::decode(stands);
}

bool GroupKeys::offer(const Cause &cause) const noexcept
{
    bool is_offered = false;
    attempt(nullptr,
            [&] { is_offered = heard_by_ && members_.store->offer(kCauseKey, cause.encode()); });
    return is_offered;
}

void GroupKeys::listen(std::function<void(const Cause &)> hear)
{
    const auto take = [hear = std::move(hear)](const std::string &value) {
        hear(Cause::decode(value));
    };
    heard_by_ = members_.store->when_set(kCauseKey, take).value_or(0);
}

void GroupKeys::stop_listening() noexcept
{
    if (heard_by_) members_.store->forget(kCauseKey, heard_by_);
}

bool GroupKeys::is_out_of_reach() const
{
    try {
        (void)members_.store->try_get(kCauseKey, soon());
        return false;
    } catch (const Error &error) {
        return error.status() == YOKE_E_COMM;
    }
}

// ---- Refused calls ----------------------------------------------------------------------------------------------

void GroupKeys::note_refused(Refused what, uint64_t number, const char *why) noexcept
{
    attempt("a refused call could not be reported to the other ranks: ", [&] {
        members_.store->set(refused_key(members_.rank, what),
                            std::to_string(number) + " " + cut(why), soon());
        has_refused_[static_cast<size_t>(what)] = true;
    });
}

void GroupKeys::forget_refused(Refused what) noexcept
{
    if (!has_refused_[static_cast<size_t>(what)].exchange(false)) return;
    attempt("", [&] { members_.store->remove(refused_key(members_.rank, what), soon()); });
}

std::string GroupKeys::refusal_of(int32_t rank, Refused what, uint64_t number,
                                  Deadline deadline) const
{
    const auto text = members_.store->try_get(refused_key(rank, what), deadline);
    const std::string front = std::to_string(number) + " ";
    return text && text->starts_with(front) ? text->substr(front.size()) : "";
}

std::vector<std::string> GroupKeys::refusals_of(const std::vector<int32_t> &ranks, Refused what,
                                                uint64_t number) const
{
    const Deadline deadline = soon();
    std::vector<std::string> told(ranks.size());
    try {
        for (size_t i = 0; i < ranks.size(); ++i)
            told[i] = refusal_of(ranks[i], what, number, deadline);
    } catch (const Error &) {  // the store does not answer, or has gone
    }
    return told;
}

// ---- Missed ranks -----------------------------------------------------------------------------------------------

std::map<int32_t, Missing> GroupKeys::exchange_missing(const Missing &mine) const
{
    constexpr const char *kMisses = "misses";
    Store &store = *members_.store;
    store.set(key_of(kMisses, members_.rank), mine.encode(), soon());
    try {
        store.wait(gather_keys(kMisses, members_.size()), soon());
    } catch (const Error &) {  // some ranks publish no message
    }
    std::map<int32_t, Missing> told;
    const Deadline deadline = soon();
    for (int32_t each = 0; each < members_.size(); ++each)
        if (const auto text = store.try_get(key_of(kMisses, each), deadline))
            told[each] = Missing::decode(*text);
    return told;
}

// ---- Departed ranks ---------------------------------------------------------------------------------------------

void GroupKeys::say_left(const std::string &how) noexcept
{
    attempt("a rank left its group, but could not report it to the other ranks: ", [&] {
        Store &store = *members_.store;
        const Deadline deadline = soon();
        store.set(key_of(kLeft, members_.rank), how, deadline);
        if (store.add(kLeft, 1, deadline) != members_.size()) return;
        Store::Keys all = gather_keys(kLeft, members_.size());  // no rank is left to ask
        all.emplace_back(kLeft);
        for (const char *key : kRefusedKeys)
            std::ranges::copy(gather_keys(key, members_.size()), std::back_inserter(all));
        store.remove_all(all, deadline);
    });
}

std::optional<std::string> GroupKeys::how_it_left(int32_t rank) const
{
    return members_.store->try_get(key_of(kLeft, rank), soon());
}

// Returns the first of these ranks that has published its departure, or -1. Asks for single ranks only if any rank
// has left.
int32_t GroupKeys::find_left(std::span<const int32_t> ranks) const
{
    const Deadline deadline = soon();
    if (!members_.store->try_get(kLeft, deadline)) return -1;
    for (const int32_t each : ranks)
        if (members_.store->try_get(key_of(kLeft, each), deadline)) return each;
    return -1;
}

// ---- The making -------------------------------------------------------------------------------------------------

std::vector<std::string> GroupKeys::gather(const std::string &mine, Deadline deadline,
                                           const char *call)
{
    Store &store = *members_.store;
    const std::string name = making_key(gathered_++);
    try {
        return all_gather(store, name, members_.rank, members_.size(), mine, deadline);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_TIMEOUT) throw;
    }
    std::string missing;
    try {
        for (const RankInfo &peer : members_.ranks)
            if (!store.try_get(key_of(name.c_str(), peer.rank), soon()))
                add_part(missing, describe(peer));
    } catch (const Error &) {  // the store does not answer at all
        missing = describe_server();
    }
    raise_missing(call, missing, deadline);
}

void GroupKeys::note_made() noexcept
{
    attempt("the keys with which a group was made could not be removed: ", [&] {
        const Deadline deadline = soon();
        if (members_.store->add(kMadeKey, 1, deadline) != members_.size()) return;
        Store::Keys all{kMadeKey};
        for (int each = 0; each < gathered_; ++each)
            std::ranges::copy(gather_keys(making_key(each), members_.size()),
                              std::back_inserter(all));
        members_.store->remove_all(all, deadline);
    });
}

bool GroupKeys::is_half_made() const noexcept
{
    bool is_there = false;
    attempt(nullptr, [&] { is_there = members_.store->try_get(kMadeKey, soon()).has_value(); });
    return is_there;
}

std::string GroupKeys::describe_server() const
{
    const int32_t server = members_.server();
    return server < 0 ? members_.store->where() : describe(members_.at(server));
}

void GroupKeys::raise_missing(const char *call, const std::string &missing, Deadline deadline)
{
    fail_in(call, YOKE_E_TIMEOUT,
            "timed out after %g s; ranks that did not arrive: %s. Check whether they are stopped",
            deadline.given_s(), missing.c_str());
}

}  // namespace yoke
