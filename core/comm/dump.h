// dump.h: file of a rank about its group, for `yoke hang`: the ranks, and the last calls.
//
// ```
//   {"format": 1, "yoke": "0.1.0", "group": "0x1f", "rank": 0, "ways": "…", "time": "2026-11-25T18:00:00Z",
//    "now": 812.5, "timeout": 600, "cause": null, "failed": null,
//    "ranks": [{"host": "a", "process": 7, "machine": "…"}],
//    "rendezvous": {"call": "shrink", "since": 811.5, "file": "t.py", "line": 8, "function": "step"},
//    "calls": 2, "sent": [0], "received": [0],
//    "records": [{"sequence": 1, "op": "all_reduce", "dtype": "float32", "count": 4, "reduction": "sum", "peer":
//    null,
//                 "state": "done", "queued": 801.25, "began": 801.25, "ended": 801.5, "file": "t.py", "line": 7,
//                 "function": "step"}]}
// ```
//
// Times, including "now", are seconds of the machine's monotonic clock. "peer" is the root, or the other rank of send
// and recv. The sequence of send and recv counts the calls of a pair, by direction. A record has "on_device": true if
// an engine of a device passes the call's tensors.
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

// Call by which ranks agree in the store, outside the group's calls: "shrink", "monitored_barrier".
struct DumpedStoreCall {
    std::string call;
    double since_s = 0;
    std::string file, function;
    int32_t line = 0;
};

struct Dump {
    std::string yoke, ways,
        time;  // version, ways between the ranks, and time in UTC
    uint64_t group = 0;
    int32_t rank = 0;
    double now_s = 0, timeout_s = 0;
    std::optional<Cause> cause;
    double failed_s = 0;          // time of the failure
    std::vector<RankInfo> ranks;  // host, process and memory of each rank
    uint64_t calls = 0;           // number of made calls; sends and receives are counted by peer
    std::vector<uint64_t> sent, received;
    std::vector<DumpedCall> records;            // the oldest first
    std::optional<DumpedStoreCall> store_call;  // store call in progress

    std::string path;  // path of the read file

    int32_t size() const noexcept { return static_cast<int32_t>(ranks.size()); }
};

DumpedCall dumped(const CallRecord &record);

// Returns the dump as JSON. Raises YOKE_E_UNSUPPORTED in a build without nlohmann-json, as read_dump does.
std::string dump_text(const Dump &dump);
// Returns the dump read from the text. Raises YOKE_E_VALUE if the text is no dump.
Dump read_dump(std::string_view text);

}  // namespace yoke
