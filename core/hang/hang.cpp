#include "core/hang/hang.h"

#include "core/base/error.h"
#include "core/hang/hang_calls.h"
#include "core/rendezvous/node.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace yoke {

const char *finding_name(FindingKind kind) noexcept
{
    static constexpr const char *kNames[] = {"cause",      "in",       "mismatch", "never_came",
                                             "behind",     "no_dump",  "ended",    "cycle",
                                             "rendezvous", "under_way"};
    return kNames[static_cast<size_t>(kind)];
}

std::optional<bool> runs_here(const RankInfo &rank)
{
    if (rank.memory.empty() || rank.memory != read_node().memory) return std::nullopt;
    if (rank.process <= 0 || rank.process > INT32_MAX) return std::nullopt;
    return kill(static_cast<pid_t>(rank.process), 0) == 0 || errno != ESRCH;
}

namespace {

// ---- Groups -----------------------------------------------------------------------------------------------------

// Returns number and processes of the group, because two jobs may give groups the same number.
std::string identity_of(const Dump &dump)
{
    std::string text = format("%llx", static_cast<unsigned long long>(dump.group));
    for (const RankInfo &each : dump.ranks)
        text += format("\n%lld ", static_cast<long long>(each.process)) + each.memory + each.host;
    return text;
}

GroupReport report_of(const std::vector<const Dump *> &dumps, const IsRunning &is_running)
{
    GroupReport report;
    report.group = dumps[0]->group;
    report.ranks = dumps[0]->ranks;
    std::vector<const Dump *> newest(report.ranks.size());
    for (const Dump *const each : dumps) {
        const Dump *&known = newest[static_cast<size_t>(each->rank)];
        const Dump *const older = known && known->now_s > each->now_s ? each : known;
        if (older) report.older.push_back(older->path);
        if (older != each) known = each;
    }
    std::vector<RankCalls> ranks;
    report.finished = UINT64_MAX;
    for (const Dump *const each : newest) {
        ranks.push_back(each ? RankCalls(*each) : RankCalls());
        report.places.push_back(ranks.back().place());
        if (each) report.finished = std::min(report.finished, ranks.back().finished());
    }
    analyse(report, ranks, is_running);
    return report;
}

}  // namespace

std::vector<GroupReport> find_hangs(const std::vector<Dump> &dumps, const IsRunning &is_running)
{
    std::vector<std::vector<const Dump *>> groups;
    std::map<std::string, size_t> places;
    for (const Dump &each : dumps) {
        const auto [place, is_new] = places.emplace(identity_of(each), groups.size());
        if (is_new) groups.emplace_back();
        groups[place->second].push_back(&each);
    }
    std::vector<GroupReport> all;
    for (const auto &group : groups) all.push_back(report_of(group, is_running));
    return all;
}

}  // namespace yoke
