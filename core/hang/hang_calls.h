// hang_calls.h: calls of a group, with the standing of each dumped rank.
#pragma once

#include "core/hang/hang.h"

#include <compare>
#include <map>

namespace yoke {

// Key of a call, alike on all its ranks.
struct CallKey {
    int32_t from = -1, to = -1;  // for send and recv; else -1
    uint64_t sequence = 0;
    auto operator<=>(const CallKey &) const = default;
    bool is_between() const noexcept { return from >= 0; }
};

enum class Standing : uint8_t { kNoDump, kNeverCame, kQueued, kIn, kDone };

// Calls dumped by a rank.
class RankCalls {
public:
    RankCalls() = default;  // for a rank without a dump
    explicit RankCalls(const Dump &dump);

    const Dump *dump() const noexcept { return dump_; }
    Standing standing(const CallKey &key) const;
    // Returns the rank's record of the call. Returns null if the rank has not made the call, or if the dump has lost
    // the old call.
    const DumpedCall *find(const CallKey &key) const;
    const std::vector<CallKey> &current() const noexcept { return current_; }  // calls in progress
    Whereabouts place() const;
    double since(
        const DumpedCall &call) const;  // returns seconds in the call, until the dump or failure
    uint64_t finished() const;          // returns how many calls of the group are finished

private:
    struct Known {
        const DumpedCall *call;
        Standing standing;
    };
    const Dump *dump_ = nullptr;
    std::map<CallKey, Known> calls_;
    std::vector<CallKey> current_;
    const DumpedCall *last_ = nullptr;  // last finished call
};

// Call with a waiting rank, and the standing of each rank.
struct StuckCall {
    CallKey key;
    std::vector<int32_t> by[static_cast<size_t>(Standing::kDone) + 1];

    const std::vector<int32_t> &of(Standing standing) const
    {
        return by[static_cast<size_t>(standing)];
    }
    std::vector<int32_t> missing() const;
};
std::vector<StuckCall> stuck_calls(const std::vector<RankCalls> &ranks);

// Chains of waiting ranks.
class Waits {
public:
    Waits(const std::vector<RankCalls> &ranks, const std::vector<StuckCall> &calls);

    // Returns circles of ranks: each rank waits for the next, and the last for the first. A rank is in at most a
    // single circle.
    std::vector<std::vector<int32_t>> cycles() const;
    // Returns ranks that wait for no rank, while other ranks wait for them.
    std::vector<int32_t> ends() const;
    // Returns the first call in which `rank` waits for `other`; null if there is no such call.
    const StuckCall *between(int32_t rank, int32_t other) const;

private:
    class Left;

    const std::vector<StuckCall> &calls_;
    std::vector<std::vector<int32_t>> missing_;     // by call
    std::vector<std::vector<size_t>> in_, missed_;  // by rank: present in calls, missing in calls
};

// Fills in the findings, the ranks to blame, and whether the group hangs.
void analyse(GroupReport &report, const std::vector<RankCalls> &ranks, const IsRunning &is_running);

}  // namespace yoke
