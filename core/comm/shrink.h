// shrink.h: the smaller group of the living ranks.
#pragma once

#include "core/base/refcount.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/comm/making.h"
#include "core/comm/record.h"

#include <mutex>
#include <vector>

namespace yoke {

class Group;

// Shrinks of a group, of which at most 1 succeeds. All run in the thread that calls Group::shrink. The lock guards
// the two flags, which another thread may read.
class Shrink {
public:
    Shrink(const Members &members, const GroupOptions &options, const GroupKeys &keys,
           const Departures &departures, Failure &failure, StoreCall &store_call);

    // Takes the ports by which ranks of several processes find each other. Ranks in threads have no ports.
    void open(ShrinkPorts ports) { ports_ = std::move(ports); }
    // Raises YOKE_E_STATE if this group has been shrunk, or this rank left a shrink.
    void check_not_shrunk() const;
    // Returns the group of the ranks that call this within `seconds`, in their order, even without rank 0. This group
    // ends for all ranks. Raises YOKE_E_COMM on a rank that comes after the others have gone on.
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
    StoreCall &store_call_;
    ShrinkPorts ports_;  // absent if ranks are threads, or after an interrupt
    mutable std::mutex mutex_;
    int attempts_ = 0;
    bool is_shrunk_ = false, has_left_ = false;
};

}  // namespace yoke
