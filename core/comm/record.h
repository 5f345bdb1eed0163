// record.h: the last calls of a group, for whoever asks why it hangs.
#pragma once

#include "core/backend/comm.h"
#include "core/base/script.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke {

struct CallRecord {
    // kIssued: all ranks have made the call, and a device is at it.
    enum State : uint8_t { kQueued, kRunning, kDone, kFailed, kIssued };
    static constexpr const char *kStates[] = {"queued", "running", "done", "failed", "issued"};

    yoke_comm_signature signature{};
    State state = kQueued;
    double queued_s = 0, began_s = 0, ended_s = 0;  // of the system's monotonic clock; 0: not yet
    int32_t op = 0, peer = -1;                      // as this rank called it
    const ScriptLine *line = nullptr;               // of the script that made the call

    // The rank from which a recv receives; -1 of other calls.
    int32_t from() const noexcept { return op == YOKE_COMM_RECV ? peer : -1; }
};

// A ring. Whoever uses it holds a lock.
class CallRecords {
public:
    static constexpr size_t kMost = 2000;

    // The number of a new one, by which it is found while it is among the last.
    uint64_t add(CallRecord record);
    // Null where it has been overwritten.
    CallRecord *find(uint64_t number);
    std::vector<CallRecord> all() const;  // the oldest first

private:
    std::vector<CallRecord> ring_;
    uint64_t count_ = 0;
};

double monotonic_seconds() noexcept;

// The call by which this rank agrees with the others in the store, such as shrink. It leaves no record, so a dump tells
// the call as long as it is under way.
class StoreCall {
public:
    struct Place {
        const char *call = nullptr;  // null: none is under way
        double since_s = 0;
        const ScriptLine *line = nullptr;  // of the script that made it
    };
    Place place() const;
    // Scope in which the calling thread makes the call.
    class Scope {
    public:
        Scope(StoreCall &of, const char *call);
        ~Scope();
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;

    private:
        StoreCall &of_;
    };

private:
    mutable std::mutex mutex_;
    Place place_;
};

}  // namespace yoke
