// hang_calls.h: the calls of a group as its dumped ranks stand to them.
#pragma once

#include "core/hang/hang.h"

#include <compare>
#include <map>

namespace yoke {

// A call, as all ranks of it count it.
struct CallKey {
    int32_t from = -1, to = -1;  // of send and recv; else -1
    uint64_t sequence = 0;
    auto operator<=>(const CallKey &) const = default;
    bool is_between() const noexcept { return from >= 0; }
};

enum class Standing : uint8_t { kNoDump, kNeverCame, kQueued, kIn, kDone };

// Calls that a rank has dumped.
class RankCalls {
public:
    RankCalls() = default;  // of one that was not dumped
    explicit RankCalls(const Dump &dump);

    const Dump *dump() const noexcept { return dump_; }
    Standing standing(const CallKey &key) const;
    // Null where it has not made it, or where it is none of the last ones any more.
    const DumpedCall *find(const CallKey &key) const;
    const std::vector<CallKey> &current() const noexcept
    {
        return current_;
    }  // those that it is in
    Whereabouts place() const;
    double since(const DumpedCall &call) const;  // how long it has been in it
    uint64_t finished() const;                   // calls of the group

private:
    struct Known {
        const DumpedCall *call;
        Standing standing;
    };
    const Dump *dump_ = nullptr;
    std::map<CallKey, Known> calls_;
    std::vector<CallKey> current_;
    const DumpedCall *last_ = nullptr;  // of those that are done
};

// A call in which some rank is, and where all of its ranks are.
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

// Chains of ranks that wait for one another.
class Waits {
public:
    Waits(const std::vector<RankCalls> &ranks, const std::vector<StuckCall> &calls);

    // Ranks that wait for the next one, the last for the first; each rank in at most one.
    std::vector<std::vector<int32_t>> cycles() const;
    // Ranks that are waited for and wait for nobody.
    std::vector<int32_t> ends() const;
    // The first call in which `rank` waits for `other`; null where it does not.
    const StuckCall *between(int32_t rank, int32_t other) const;

private:
    class Left;

    const std::vector<StuckCall> &calls_;
    std::vector<std::vector<int32_t>> missing_;     // by call
    std::vector<std::vector<size_t>> in_, missed_;  // by rank: calls that it is in, and lacks from
};

// Fills in findings, whom they blame, and whether the group hangs.
void analyse(GroupReport &report, const std::vector<RankCalls> &ranks, const IsRunning &is_running);

}  // namespace yoke
