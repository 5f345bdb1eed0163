// dump.h: what a rank tells of its group in a file, for `yoke hang`: who the ranks are, and the last calls.
//
//   {"format": 1, "yoke": "0.1.0", "group": "0x1f", "rank": 0, "ways": "…", "time": "2026-11-25T18:00:00Z", "now":
//   812.5,
//    "timeout": 600, "cause": null, "failed": null, "ranks": [{"host": "a", "process": 7, "machine": "…"}],
//    "meeting": {"call": "shrink", "since": 811.5, "file": "t.py", "line": 8, "function": "step"},
//    "calls": 2, "sent": [0], "received": [0],
//    "records": [{"sequence": 1, "op": "all_reduce", "dtype": "float32", "count": 4, "reduction": "sum", "peer": null,
//                 "state": "done", "queued": 801.25, "began": 801.25, "ended": 801.5, "file": "t.py", "line": 7,
//                 "function": "step"}]}
//
// Times are seconds of that machine's monotonic clock, "now" among them. "peer" is the root, or the other rank of send
// and recv, whose sequence counts the calls from one to the other. A record has "on_device": true if an engine of a
// device passes the call's tensors.
#pragma once

#include "core/comm/cause_of.h"
#include "core/comm/record.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

inline constexpr int64_t kDumpFormat = 1;

struct DumpedCall {
    CallRecord call;  // without its line
    std::string file, function;
    int32_t line = 0;
};

// What ranks agree on in the store, and is none of the group's calls: "shrink", "monitored_barrier".
struct DumpedStoreCall {
    std::string call;
    double since_s = 0;
    std::string file, function;
    int32_t line = 0;
};

struct Dump {
    std::string yoke, ways,
        time;  // its version, how the ranks reach each other, when it was made, in UTC
    uint64_t group = 0;
    int32_t rank = 0;
    double now_s = 0, timeout_s = 0;
    std::optional<Cause> cause;
    double failed_s = 0;          // when it failed
    std::vector<RankInfo> ranks;  // of each rank, host, process and memory
    uint64_t calls = 0;           // that it has made; sends and receives are counted by peer
    std::vector<uint64_t> sent, received;
    std::vector<DumpedCall> records;            // the oldest first
    std::optional<DumpedStoreCall> store_call;  // that it is in

    std::string path;  // where it was read from

    int32_t size() const noexcept { return static_cast<int32_t>(ranks.size()); }
};

DumpedCall dumped(const CallRecord &record);

// Raises YOKE_E_UNSUPPORTED in a build without nlohmann-json, as reading does.
std::string dump_text(const Dump &dump);
// Raises YOKE_E_VALUE for what is no dump.
Dump read_dump(std::string_view text);

}  // namespace yoke
