// hang.h: who keeps a group from going on, by what its ranks have dumped.
//
// Each call in which a rank is waits for those that have not come to it, and these may wait in other calls: whom all of
// that leads to is to blame. So are ranks that wait for each other in a circle, and those whose call is another one. A
// rank without a dump is to blame only where nobody else is.
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
    kMismatch,   // ranks whose call is another one than that of most
    kNeverCame,  // ranks that have not called it
    kBehind,     // ranks that have, and are in a call before it
    kNoDump,
    kEnded,  // ranks whose process has ended
    kCycle,
    kStoreCall,  // ranks that meet others in the store, as in shrink
    kUnderWay,   // nobody is missing
};
const char *finding_name(FindingKind kind) noexcept;  // "never_came"

struct Finding {
    FindingKind kind;
    std::vector<int32_t> ranks;
    std::string text;  // a sentence for people
};

// Where a rank is: in a call, or behind its last one; null where it has made none, is in a meeting, or was not dumped.
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
    uint64_t finished = 0;            // calls of the group that all dumped ranks have finished
    std::vector<Finding> findings;
    std::vector<int32_t> blamed;
    std::vector<std::string> older;  // dumps of ranks of which there is a newer one
    bool hangs = false;
};

// Whether a process runs; nothing where it is of another machine.
using IsRunning = std::function<std::optional<bool>(const RankInfo &)>;
std::optional<bool> runs_here(const RankInfo &rank);

// A report for each group. The dumps are to outlive it.
std::vector<GroupReport> find_hangs(const std::vector<Dump> &dumps, const IsRunning &is_running);

// Returns the report of yoke_comm_hang on files and folders. Raises YOKE_E_VALUE where there is no path, and YOKE_E_IO
// where no dump can be read.
Ref<State> hang_report(const std::vector<std::string> &paths, const char *call);

}  // namespace yoke
