// Findings in the calls of a group, as sentences for people.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/collective.h"
#include "core/hang/hang_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace yoke {

namespace {

// ---- Words ------------------------------------------------------------------------------------------------------

std::string seconds_text(double seconds)
{
    return format(seconds < 100 ? "%.3g s" : "%.0f s", seconds);
}

// Returns "rank 3" or "ranks 0, 2 to 5".
std::string ranks_text(const std::vector<int32_t> &ranks)
{
    std::string text;
    for (size_t i = 0; i < ranks.size(); ++i) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        add_part(text, std::to_string(ranks[i]));
        if (last > i + 1) text += " to " + std::to_string(ranks[i = last]);
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string call_text(const DumpedCall &each)
{
    return describe(each.call.signature, each.call.from());
}

std::string place_text(const DumpedCall &each)
{
    const std::string line = describe_line(each.file, each.line, each.function);
    return line.empty() ? "" : " at " + line;
}

std::string key_text(const CallKey &key)
{
    const auto number = static_cast<unsigned long long>(key.sequence);
    if (!key.is_between()) return format("call %llu", number);
    return format("send %llu from rank %d to rank %d", number, key.from, key.to);
}

// Seconds above the time of a normal call. Only huge or hindered calls take longer.
constexpr double kLong = 10;

std::string store_call_text(const DumpedStoreCall &store_call)
{
    const std::string line = describe_line(store_call.file, store_call.line, store_call.function);
    return store_call.call + (line.empty() ? "" : " at " + line);
}

// ---- Findings ---------------------------------------------------------------------------------------------------

class Analysis {
public:
    Analysis(GroupReport &report, const std::vector<RankCalls> &ranks, const IsRunning &is_running)
        : report_(report),
          ranks_(ranks),
          is_running_(is_running),
          calls_(stuck_calls(ranks)),
          waits_(ranks, calls_)
    {
    }

    void run()
    {
        find_cause();
        for (const StuckCall &call : calls_) find_in(call);
        find_cycles();
        find_store_calls();
        find_missing_dumps();
        find_ended();
        blame();
    }

private:
    void add(FindingKind kind, std::vector<int32_t> ranks, std::string text)
    {
        report_.findings.push_back({kind, std::move(ranks), std::move(text)});
    }
    void find_cause();
    void find_in(const StuckCall &call);
    bool find_mismatch(const StuckCall &call);
    // Signature of a rank's call, and the ranks with equal signatures.
    using Said = std::tuple<int32_t, int32_t, int64_t, int32_t, int32_t>;
    std::map<Said, std::vector<int32_t>> said_of(const StuckCall &call);
    void find_under_way(const StuckCall &call);
    void find_missing(const StuckCall &call, Standing standing);
    std::string current(int32_t rank) const;
    void find_cycles();
    void find_store_calls();
    void find_missing_dumps();
    void find_ended();
    void blame();
    std::string ended_text(int32_t rank) const;

    const RankInfo &info(int32_t rank) const { return report_.ranks[static_cast<size_t>(rank)]; }
    const RankCalls &calls_of(int32_t rank) const { return ranks_[static_cast<size_t>(rank)]; }
    // Returns each text with its ranks, sorted by the first rank.
    template <class Text>
    std::vector<std::pair<std::string, std::vector<int32_t>>> alike(
        const std::vector<int32_t> &ranks, const Text &text_of) const
    {
        std::vector<std::pair<std::string, std::vector<int32_t>>> all;
        std::map<std::string, size_t> places;
        for (const int32_t rank : ranks) {
            const auto [place, is_new] = places.emplace(text_of(rank), all.size());
            if (is_new) all.push_back({place->first, {}});
            all[place->second].second.push_back(rank);
        }
        return all;
    }

    GroupReport &report_;
    const std::vector<RankCalls> &ranks_;
    const IsRunning &is_running_;
    const std::vector<StuckCall> calls_;
    const Waits waits_;
    std::set<int32_t> differing_, circling_, absent_;
};

// Adds a finding for each cause, with its ranks. Usually all ranks have the same cause, but a rank cut off from the
// others has its own.
void Analysis::find_cause()
{
    std::vector<int32_t> failed;
    for (const RankCalls &each : ranks_)
        if (each.dump() && each.dump()->cause) failed.push_back(each.dump()->rank);
    for (const auto &[text, ranks] :
         alike(failed, [&](int32_t rank) { return calls_of(rank).dump()->cause->text; }))
        add(FindingKind::kCause, ranks, "the group has failed: " + text);
}

// Adds the findings on a call: the ranks in the call, ranks with a different call, and the missing ranks. If ranks
// differ or are missing, the group hangs. Else adds that the call is under way.
void Analysis::find_in(const StuckCall &call)
{
    const auto text = [&](int32_t rank) {
        const DumpedCall &each = *calls_of(rank).find(call.key);
        return call_text(each) + place_text(each);
    };
    for (const auto &[said, ranks] : alike(call.of(Standing::kIn), text)) {
        double least = INFINITY;
        for (const int32_t rank : ranks)
            least = std::min(least, calls_of(rank).since(*calls_of(rank).find(call.key)));
        add(FindingKind::kIn, ranks,
            format("%s: %s for %s in %s", key_text(call.key).c_str(), ranks_text(ranks).c_str(),
                   seconds_text(least).c_str(), said.c_str()));
    }
    const bool differs = find_mismatch(call);
    find_missing(call, Standing::kNeverCame);
    find_missing(call, Standing::kQueued);
    const bool is_missed = !call.missing().empty();
    report_.hangs = report_.hangs || differs || is_missed;
    if (!differs && !is_missed) find_under_way(call);
}

std::map<Analysis::Said, std::vector<int32_t>> Analysis::said_of(const StuckCall &call)
{
    std::map<Said, std::vector<int32_t>> said;
    for (const Standing standing : {Standing::kIn, Standing::kQueued, Standing::kDone})
        for (const int32_t rank : call.of(standing))
            if (const DumpedCall *const found = calls_of(rank).find(call.key)) {
                const yoke_comm_signature &s = found->call.signature;
                said[{s.op, s.dtype, s.count, s.reduction, s.root}].push_back(rank);
            }
    for (auto &[key, ranks] : said) std::ranges::sort(ranks);
    return said;
}

bool Analysis::find_mismatch(const StuckCall &call)
{
    const std::map<Said, std::vector<int32_t>> said = said_of(call);
    if (said.size() < 2) return false;
    size_t most = 0, as_many = 0;
    for (const auto &[key, ranks] : said) {
        if (ranks.size() > most) most = ranks.size(), as_many = 0;
        as_many += ranks.size() == most;
    }
    std::string text;
    std::vector<int32_t> differing;
    for (const auto &[key, ranks] : said) {
        const DumpedCall &each = *calls_of(ranks[0]).find(call.key);
        text += (text.empty() ? "" : "; ") + ranks_text(ranks) + " called " + call_text(each) +
                place_text(each);
        if (ranks.size() < most || as_many > 1)
            differing.insert(differing.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(differing);
    differing_.insert(differing.begin(), differing.end());
    add(FindingKind::kMismatch, differing,
        key_text(call.key) + ": ranks do not make the same call: " + text);
    return true;
}

void Analysis::find_under_way(const StuckCall &call)
{
    double least = INFINITY;
    for (const int32_t rank : call.of(Standing::kIn))
        least = std::min(least, calls_of(rank).since(*calls_of(rank).find(call.key)));
    const std::vector<int32_t> &done = call.of(Standing::kDone);
    const bool is_long = least >= kLong;
    std::string text = key_text(call.key) + ": no rank is missing";
    if (!done.empty())
        text += format(
            "; %s finished the call, so the other ranks are stopped, or their dumps are older",
            (ranks_text(done) + (done.size() == 1 ? " has" : " have")).c_str());
    else
        text += is_long ? "; the transfer of its data is stopped or slow" : "; the call is running";
    add(FindingKind::kUnderWay, call.of(Standing::kIn), text);
    report_.hangs = report_.hangs || is_long;
}

// Returns the call in which a rank is now: "in barrier at b.py:3 (main), call 6", or "in no call; its last call was
// …".
std::string Analysis::current(int32_t rank) const
{
    const RankCalls &calls = calls_of(rank);
    if (!calls.current().empty()) {
        const CallKey &key = calls.current()[0];
        const DumpedCall &each = *calls.find(key);
        return "in " + call_text(each) + place_text(each) + ", " + key_text(key);
    }
    const Whereabouts last = calls.place();
    if (last.dump->store_call) return "in " + store_call_text(*last.dump->store_call);
    if (!last.call) return "in no call, and has made no call";
    return "in no call; its last call was " + call_text(*last.call) + place_text(*last.call);
}

void Analysis::find_missing(const StuckCall &call, Standing standing)
{
    const bool has_called = standing == Standing::kQueued;
    const char *const kind = has_called ? "called it, and" : "not called it, and";
    for (const auto &[said, ranks] :
         alike(call.of(standing), [&](int32_t rank) { return current(rank); })) {
        const bool is_one = ranks.size() == 1;
        std::string text =
            format("%s: %s %s %s %s %s", key_text(call.key).c_str(),
                   is_one ? describe(info(ranks[0])).c_str() : ranks_text(ranks).c_str(),
                   is_one ? "has" : "have", kind, is_one ? "is" : "are", said.c_str());
        const Whereabouts place = calls_of(ranks[0]).place();
        const bool is_in = place.is_in || place.dump->store_call;
        if (is_one && (place.call || is_in))
            text += (is_in ? ", for " : ", which ended ") + seconds_text(place.since_s) +
                    (is_in ? "" : " before");
        add(has_called ? FindingKind::kBehind : FindingKind::kNeverCame, ranks, text);
    }
}

void Analysis::find_cycles()
{
    for (const std::vector<int32_t> &cycle : waits_.cycles()) {
        std::string text = "ranks wait for each other: ";
        for (size_t i = 0; i < cycle.size(); ++i) {
            const int32_t other = cycle[(i + 1) % cycle.size()];
            const DumpedCall &each = *calls_of(cycle[i]).find(waits_.between(cycle[i], other)->key);
            text += format("%srank %d for rank %d in %s", i ? ", " : "", cycle[i], other,
                           (call_text(each) + place_text(each)).c_str());
        }
        circling_.insert(cycle.begin(), cycle.end());
        add(FindingKind::kCycle, cycle, text);
    }
}

// Adds the ranks in a store call, such as shrink, which all ranks must make. If these ranks have waited long, the
// group hangs, and dumped ranks in no call are to blame. If all dumped ranks are in the store call, ranks without a
// dump are to blame.
void Analysis::find_store_calls()
{
    std::vector<int32_t> in, out;
    double least = INFINITY;
    for (size_t i = 0; i < ranks_.size(); ++i) {
        const Dump *const dump = ranks_[i].dump();
        if (!dump) continue;
        const bool is_in = dump->store_call && ranks_[i].current().empty();
        (is_in ? in : out).push_back(dump->rank);
        if (is_in) least = std::min(least, ranks_[i].place().since_s);
    }
    const auto text = [&](int32_t rank) {
        return store_call_text(*calls_of(rank).dump()->store_call);
    };
    for (const auto &[said, ranks] : alike(in, text))
        add(FindingKind::kStoreCall, ranks,
            ranks_text(ranks) + (ranks.size() == 1 ? " waits" : " wait") +
                " for the other ranks in " + said);
    if (in.empty() || least < kLong) return;
    report_.hangs = true;
    for (const int32_t rank : out)
        if (calls_of(rank).current().empty()) absent_.insert(rank);
    if (out.empty())
        for (size_t rank = 0; rank < ranks_.size(); ++rank)
            if (!ranks_[rank].dump()) absent_.insert(static_cast<int32_t>(rank));
}

std::string Analysis::ended_text(int32_t rank) const
{
    const std::optional<bool> runs = is_running_(info(rank));
    if (!runs) return "";
    return *runs ? "; its process runs, so a dump is possible" : "; its process has exited";
}

void Analysis::find_missing_dumps()
{
    std::vector<int32_t> missing;
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
        if (!ranks_[rank].dump()) missing.push_back(static_cast<int32_t>(rank));
    for (const auto &[text, ranks] : alike(missing, [&](int32_t rank) { return ended_text(rank); }))
        add(FindingKind::kNoDump, ranks,
            "no dump of " + (ranks.size() == 1 ? describe(info(ranks[0])) : ranks_text(ranks)) +
                (text.empty() ? ": died, or was not dumped" : text));
}

void Analysis::find_ended()
{
    std::vector<int32_t> ended;
    for (const RankCalls &each : ranks_)
        if (each.dump() && !is_running_(info(each.dump()->rank)).value_or(true))
            ended.push_back(each.dump()->rank);
    if (ended.empty()) return;
    add(FindingKind::kEnded, ended,
        (ended.size() == 1 ? "the process of " + describe(info(ended[0])) + " has"
                           : "the processes of " + ranks_text(ended) + " have") +
            " exited since the dump");
}

// Sets the blamed ranks. A rank without a dump is blamed only if no other rank is.
void Analysis::blame()
{
    std::set<int32_t> blamed = differing_, unknown;
    blamed.insert(circling_.begin(), circling_.end());
    blamed.insert(absent_.begin(), absent_.end());
    for (const int32_t rank : waits_.ends())
        (calls_of(rank).dump() ? blamed : unknown).insert(rank);
    if (blamed.empty()) blamed = unknown;
    report_.blamed.assign(blamed.begin(), blamed.end());
}

}  // namespace

void analyse(GroupReport &report, const std::vector<RankCalls> &ranks, const IsRunning &is_running)
{
    Analysis(report, ranks, is_running).run();
}

}  // namespace yoke
