#include "core/rendezvous/check_in.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/rendezvous/init_call.h"
#include "core/store/socket_address.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace yoke {

namespace {

constexpr char kField = '\x1f', kRecord = '\x1e';
constexpr char kNote = '!';  // in front of other entries than a RankInfo
constexpr const char *kVerdict = "verdict", *kCount = "arrivals";
// Seconds after the deadline, in which the ranks agree on the outcome.
constexpr double kGrace = 0.1;

std::string rank_key(int64_t number)
{
    return "arrival/" + std::to_string(number);
}

std::vector<std::string> split(std::string_view text, char at)
{
    std::vector<std::string> parts;
    for (;;) {
        const size_t end = text.find(at);
        parts.emplace_back(text.substr(0, end));
        if (end == text.npos) return parts;
        text.remove_prefix(end + 1);
    }
}

void add_to_list(Store &store, const std::string &text, Deadline deadline)
{
    store.set(rank_key(store.add(kCount, 1, deadline) - 1), text, deadline);
}

std::string encode_verdict(const CheckIn::Verdict &verdict)
{
    return std::to_string(verdict.status) + kField + verdict.text;
}

CheckIn::Verdict decode_verdict(const std::string &text)
{
    const size_t end = text.find(kField);
    const auto status = parsed<int32_t>(std::string_view(text).substr(0, end));
    if (status && end != text.npos) return {*status, text.substr(end + 1)};
    return {
        YOKE_E_COMM,
        "comm.init: the store has other data in place of Yoke's outcome; give each job its own store"};
}

// Numbers each rank among the ranks of its node, in the order of ranks. If the launchers of all ranks gave local
// ranks, these stay.
void number_locally(std::vector<RankInfo> &all)
{
    const auto is_told = [](const RankInfo &one) {
        return one.local_rank >= 0 && one.local_size > 0;
    };
    if (std::all_of(all.begin(), all.end(), is_told)) return;
    for (RankInfo &one : all) {
        one.local_rank = one.local_size = 0;
        for (const RankInfo &other : all) {
            one.local_rank += other.node == one.node && other.rank < one.rank;
            one.local_size += other.node == one.node;
        }
    }
}

// Replaces loopback addresses on rank 0's machine by rank 0's address: other machines cannot use a loopback address.
void mend_addresses(std::vector<RankInfo> &all)
{
    for (RankInfo &one : all)
        if (is_loopback(one.address) && one.node == all[0].node) one.address = all[0].address;
}

std::string encode_all(std::vector<RankInfo> all)
{
    std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.rank < b.rank; });
    number_locally(all);
    mend_addresses(all);
    std::string text;
    for (const RankInfo &one : all) add_part(text, one.encode(), std::string(1, kRecord));
    return text;
}

std::vector<RankInfo> decode_all(const std::string &text)
{
    std::vector<RankInfo> all;
    for (const std::string &record : split(text, kRecord))
        if (auto info = RankInfo::decode(record)) all.push_back(std::move(*info));
    return all;
}

// List of the first 16 of many texts. text() adds how many more there are.
class ShortList {
public:
    bool has_room() const { return listed_ < kMost; }
    void add(const std::string &one)
    {
        if (has_room()) text_ += (listed_++ ? ", " : "") + one;
    }
    std::string text(size_t all) const
    {
        return text_ + (all > listed_ ? format(" and %zu more", all - listed_) : "");
    }

private:
    static constexpr size_t kMost = 16;
    std::string text_;
    size_t listed_ = 0;
};

bool is_same_process(const RankInfo &one, const RankInfo &other)
{
    return one.process == other.process && one.host == other.host && one.memory == other.memory;
}

}  // namespace

std::string RankInfo::encode() const
{
    std::string text;
    for (const std::string &field :
         {std::to_string(rank), std::to_string(size), host, std::to_string(process), node, memory,
          address, build, device, std::to_string(local_rank), std::to_string(local_size),
          silence}) {
        if (!text.empty()) text += kField;
        for (const char c : field) text += c == kField || c == kRecord ? '?' : c;
    }
    return text;
}

std::optional<RankInfo> RankInfo::decode(std::string_view text)
{
    const std::vector<std::string> fields = split(text, kField);
    if (fields.size() != 12) return std::nullopt;
    const auto number = [&](size_t i) { return parsed<int32_t>(fields[i]).value_or(-1); };
    RankInfo made{number(0), number(1), fields[2],  parsed<int64_t>(fields[3]).value_or(0),
                  fields[4], fields[5], fields[6],  fields[7],
                  fields[8], number(9), number(10), fields[11]};
    return made.rank >= 0 ? std::optional(std::move(made)) : std::nullopt;
}

std::string describe_process(const RankInfo &info)
{
    return format("host %s, process %lld", info.host.c_str(), static_cast<long long>(info.process));
}

std::string describe(const RankInfo &info)
{
    return format("rank %d (%s)", info.rank, describe_process(info).c_str());
}

std::string unlike_devices(const std::vector<RankInfo> &all)
{
    const RankInfo *first = nullptr;
    std::map<std::string_view, size_t> ranks;
    for (const RankInfo &one : all) {
        ++ranks[one.device];
        if (!first && one.device != all[0].device) first = &one;
    }
    if (!first) return "";
    return format(
        "comm.init: %s has %s (%zu of %d ranks), but %s has %s (%zu ranks): all ranks wait for the slowest, and the last bits of results may differ",
        describe(all[0]).c_str(), all[0].device.c_str(), ranks[all[0].device], all[0].size,
        describe(*first).c_str(), first->device.c_str(), ranks[first->device]);
}

std::string unlike_silence(const std::vector<RankInfo> &all)
{
    for (const RankInfo &one : all)
        if (one.silence != all[0].silence)
            return format(
                "comm.init: %s has YOKE_COMM_SILENCE of %s s, and %s of %s s: the smallest value decides when the group ends; give all ranks the same value",
                describe(all[0]).c_str(), all[0].silence.c_str(), describe(one).c_str(),
                one.silence.c_str());
    return "";
}

bool CheckIn::is_over(Store &store, Deadline deadline)
{
    return store.try_get(kVerdict, deadline).has_value();
}

void CheckIn::await_others(Store &store, int32_t size, Deadline deadline)
try {
    if (size > 1) store.wait({rank_key(size - 2)}, deadline);
} catch (const Error &error) {
    if (error.status() != YOKE_E_TIMEOUT) throw;
}

void CheckIn::refuse(Store &store, const std::string &why, Deadline deadline)
{
    store.set_once(kVerdict, encode_verdict({YOKE_E_COMM, cut(why)}), deadline);
    add_to_list(store, std::string(1, kNote), deadline);  // wakes the reader of the list
}

// Returns why the newcomer cannot be a rank of this process's job; else "".
std::string CheckIn::fault_of(const RankInfo &newcomer) const
{
    if (newcomer.size != self_.size)
        return format(
            "comm.init: %s has a job of %d ranks, but %s has a job of %d; give all ranks the same WORLD_SIZE",
            describe(self_).c_str(), self_.size, describe(newcomer).c_str(), newcomer.size);
    if (newcomer.rank >= newcomer.size)
        return format(
            "comm.init: %s is not a rank of a job of %d, whose ranks are 0 to %d; check its RANK",
            describe(newcomer).c_str(), newcomer.size, newcomer.size - 1);
    if (newcomer.build != self_.build)
        return format(
            "comm.init: %s runs %s, but %s runs %s; give all ranks the same build of Yoke",
            describe(self_).c_str(), self_.build.c_str(), describe(newcomer).c_str(),
            newcomer.build.c_str());
    for (const RankInfo &other : come_)
        if (other.rank == newcomer.rank)
            return format(
                "comm.init: two processes have rank %d: %s and %s; give each process its own RANK, and each job its own port",
                newcomer.rank, describe_process(other).c_str(), describe_process(newcomer).c_str());
    return "";
}

CheckIn::Verdict CheckIn::who_is_missing(double given_s) const
{
    std::map<int32_t, std::string> come;
    for (const RankInfo &one : come_)
        if (one.rank < self_.size) come.emplace(one.rank, describe(one));
    const size_t count = static_cast<size_t>(self_.size) - come.size();
    ShortList missing, there;
    for (int32_t rank = 0; rank < self_.size && missing.has_room(); ++rank)
        if (!come.contains(rank)) missing.add(std::to_string(rank));
    for (const auto &[rank, who] : come) there.add(who);
    return {
        YOKE_E_TIMEOUT,
        format(
            "comm.init: timed out after %g s; %zu of %d ranks did not arrive: %s; ranks that arrived: %s. Check why the others did not start, or use a longer init_timeout",
            given_s, count, self_.size, missing.text(count).c_str(),
            there.text(come.size()).c_str())};
}

// Reads the list's new entries into come_, without waiting for further entries. Skips entries that are no RankInfo.
void CheckIn::read_ranks(Deadline deadline)
{
    while (const auto text = store_.try_get(rank_key(read_), deadline)) {
        ++read_;
        if (auto info = RankInfo::decode(*text)) come_.push_back(std::move(*info));
    }
}

bool CheckIn::is_complete() const
{
    return come_.size() == static_cast<size_t>(self_.size);
}

CheckIn::Verdict CheckIn::judge(Deadline deadline)
{
    while (!is_complete()) {
        std::string text;
        try {
            text = store_.get(rank_key(read_), deadline);
        } catch (const Error &error) {
            if (error.status() != YOKE_E_TIMEOUT) throw;
            return who_is_missing(deadline.given_s());
        }
        ++read_;
        if (text[0] == kNote) return decode_verdict(store_.get(kVerdict, deadline));
        auto newcomer = RankInfo::decode(text);
        if (!newcomer)
            return {
                YOKE_E_COMM,
                "comm.init: the store has other data in place of rank infos; give each job its own store"};
        const std::string fault = fault_of(*newcomer);
        if (!fault.empty()) return {YOKE_E_COMM, fault};
        come_.push_back(std::move(*newcomer));
    }
    for (RankInfo &one : come_)
        if (one.rank == 0 && own_address_) one.address = own_address_();
    return {YOKE_OK, encode_all(come_)};
}

CheckIn::Verdict CheckIn::hear(Deadline deadline)
{
    try {
        return decode_verdict(store_.get(kVerdict, deadline));
    } catch (const Error &error) {
        if (error.status() != YOKE_E_TIMEOUT) throw;
    }
    read_ranks(Deadline::after(kGrace));
    return stand_by(who_is_missing(deadline.given_s()), Deadline::after(kGrace));
}

CheckIn::Verdict CheckIn::stand_by(const Verdict &own, Deadline deadline)
{
    try {
        return decode_verdict(store_.set_once(kVerdict, encode_verdict(own), deadline));
    } catch (const Error &) {
        if (own.status == YOKE_OK) throw;
        return own;
    }
}

std::vector<RankInfo> CheckIn::meet(Deadline deadline)
{
    add_to_list(store_, self_.encode(), deadline);
    const Verdict verdict =
        self_.rank == 0 ? stand_by(judge(deadline), Deadline::after(kGrace)) : hear(deadline);
    if (verdict.status != YOKE_OK)
        throw Error(verdict.status, verdict.text).naming(strlen(kInitCall));
    std::vector<RankInfo> all = decode_all(verdict.text);
    if (all.size() != static_cast<size_t>(self_.size) || self_.rank >= self_.size ||
        !is_same_process(all[static_cast<size_t>(self_.rank)], self_))
        fail_in(
            kInitCall, YOKE_E_COMM,
            "the job at this address already has all its ranks, and %s is not among them: %s; give each job its own port or file",
            describe(self_).c_str(), all.empty() ? "" : describe(all[0]).c_str());
    return all;
}

}  // namespace yoke
