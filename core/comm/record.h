// record.h: the last calls of a group, for the search of a hang.
#pragma once

#include "core/backend/comm.h"
#include "core/base/script.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke {

struct CallRecord {
    // kIssued: all ranks have made the call, and a device runs it.
    enum State : uint8_t { kQueued, kRunning, kDone, kFailed, kIssued };
    static constexpr const char *kStates[] = {"queued", "running", "done", "failed", "issued"};

    yoke_comm_signature signature{};
    State state = kQueued;
    double queued_s = 0, began_s = 0, ended_s = 0;  // by the system's monotonic clock; 0: not yet
    int32_t op = 0, peer = -1;                      // as called by this rank
    const ScriptLine *line = nullptr;               // line of the script's call

    // Returns the sender of a recv; -1 for other calls.
    int32_t from() const noexcept { return op == YOKE_COMM_RECV ? peer : -1; }
};

// Ring of records. Its user holds a lock.
class CallRecords {
public:
    static constexpr size_t kMost = 2000;

    // Adds a record, in place of the oldest if the ring is full. Returns the record's number for `find`.
    uint64_t add(CallRecord record);
    // Returns the record with this number; null if the record was overwritten.
    CallRecord *find(uint64_t number);
    std::vector<CallRecord> all() const;  // the oldest first

private:
    std::vector<CallRecord> ring_;
    uint64_t count_ = 0;
};

double monotonic_seconds() noexcept;

// Call by which this rank agrees with the others in the store, such as shrink. It leaves no record, so a dump shows
// only a call under way.
class StoreCall {
public:
    struct Place {
        const char *call = nullptr;  // null: no call is under way
        double since_s = 0;
        const ScriptLine *line = nullptr;  // line of the script's call
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
