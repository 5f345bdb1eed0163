// hang.h: ranks that keep a group from going on, found in the dumps of its ranks.
//
// A rank in a call waits for the missing ranks of the call, and these may wait in other calls. The ranks at the end
// of such a chain are to blame. Ranks that wait for each other in a circle are to blame too, and ranks with a
// different call. A rank without a dump is to blame only if no other rank is.
#pragma once

#include "core/comm/dump.h"
#include "core/state/tree.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

enum class FindingKind : uint8_t {
    kCause,      // why the group failed
    kIn,         // ranks that are in a call
    kMismatch,   // ranks whose call differs from most ranks' call
    kNeverCame,  // ranks without this call
    kBehind,     // ranks that made this call, and are in an earlier call
    kNoDump,
    kEnded,  // ranks whose process has ended
    kCycle,
    kStoreCall,  // ranks that wait for others in the store, as in shrink
    kUnderWay,   // all ranks are in the call
};
const char *finding_name(FindingKind kind) noexcept;  // returns the report's word: "never_came"

struct Finding {
    FindingKind kind;
    std::vector<int32_t> ranks;
    std::string text;  // a sentence for people
};

// Place of a rank: in a call, or behind its last call. `call` is null in a store call. `call` is also null if the
// rank has made no call or was not dumped.
struct Whereabouts {
    const Dump *dump = nullptr;
    const DumpedCall *call = nullptr;
    bool is_in = false;
    double since_s = 0;  // until its dump, or until the group failed
};

struct GroupReport {
    uint64_t group = 0;
    std::vector<RankInfo> ranks;
    std::vector<Whereabouts> places;  // by rank
    uint64_t finished = 0;            // calls of the group finished by all dumped ranks
    std::vector<Finding> findings;
    std::vector<int32_t> blamed;
    std::vector<std::string> older;  // dumps of ranks with a newer dump
    bool hangs = false;
};

// Function that returns whether a process runs; nullopt if the process is on another machine, or in another pid
// namespace.
using IsRunning = std::function<std::optional<bool>(const RankInfo &)>;
std::optional<bool> runs_here(const RankInfo &rank);

// Returns a report for each group found in the dumps. If a rank has several dumps, the newest counts. The dumps must
// outlive the reports.
std::vector<GroupReport> find_hangs(const std::vector<Dump> &dumps, const IsRunning &is_running);

// Returns the report of yoke_comm_hang on files and folders. Lists files that it cannot read under "problems". Raises
// YOKE_E_VALUE if there is no path, and YOKE_E_IO if no dump can be read.
Ref<State> hang_report(const std::vector<std::string> &paths, const char *call);

}  // namespace yoke
