// shrink.h: the smaller group of the ranks that still live.
#pragma once

#include "core/base/refcount.h"
#include "core/comm/call_queue.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/comm/making.h"

#include <mutex>
#include <vector>

namespace yoke {

class Group;

// The shrinks of one group, of which one succeeds. A call comes from its caller's thread.
class Shrink {
public:
    Shrink(const Members &members, const GroupOptions &options, const GroupKeys &keys,
           const Departures &departures, Failure &failure, CallQueue &calls);

    // Notes where ranks of several processes find each other; of threads these are not there.
    void open(ShrinkPorts ports) { ports_ = std::move(ports); }
    // Raises YOKE_E_STATE where this group has been shrunk, or this rank left a shrink.
    void check_not_shrunk() const;
    // Returns the group of the ranks that call this within `seconds`, in their order, even without rank 0; this group
    // ends for all. Raises YOKE_E_COMM in a rank that comes when the others have gone on.
    Ref<Group> run(double seconds);

private:
    Members reunite(Deadline deadline);
    Ref<Group> make_of(const Members &living, Deadline deadline) const;
    void end_group(double seconds) noexcept;
    void warn_of_absent(const std::vector<int32_t> &present) const;

    const Members &members_;
    const GroupOptions &options_;
    const GroupKeys &keys_;
    const Departures &departures_;
    Failure &failure_;
    CallQueue &calls_;
    ShrinkPorts ports_;  // of processes
    mutable std::mutex mutex_;
    int attempts_ = 0;
    bool is_shrunk_ = false, has_left_ = false;
};

}  // namespace yoke
