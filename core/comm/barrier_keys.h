// barrier_keys.h: what the ranks of a group tell each other in the store about monitored barriers.
#pragma once

#include "core/base/deadline.h"
#include "core/rendezvous/members.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace yoke {

// Keys of the barriers of one group. Barriers count from 1, and each try of a barrier has a number of its own. Any
// thread may call the functions: there is no lock. Functions raise what the store raises, unless they are noexcept.
class BarrierKeys {
public:
    explicit BarrierKeys(const Members &members) : members_(members) {}

    // Returns a view for one wait. If somebody ends the view, the wait ends, and the group's table goes on.
    std::shared_ptr<Store> view() const;
    // Tells that this rank has come. The rank that comes last ends the barrier.
    void come_to(uint64_t number, Deadline deadline) const;
    // Returns whether a barrier has ended, however it ended.
    bool has_ended(uint64_t number, Store &view, Deadline deadline) const;
    // Waits for the end. Returns the ranks that had not come by then.
    std::vector<int32_t> await_end(uint64_t number, Store &view, Deadline deadline) const;
    std::vector<int32_t> missing_at(uint64_t number, Store &view) const;
    // Ends a barrier without the ranks that are missing. Returns who is missing as the first rank tells that ended it.
    std::vector<int32_t> give_up(uint64_t number) const;
    // Returns the first barrier that no rank has given up, or one before; 0 where no rank has given one up.
    uint64_t next() const;
    // Returns whether a barrier has ended with all ranks; false where the table does not answer.
    bool have_all_come(uint64_t number) const noexcept;
    // Removes this rank's keys of the barriers from `first` up to `before`, and on rank 0 those of all ranks.
    void forget(uint64_t first, uint64_t before) const noexcept;

private:
    const Members &members_;
};

}  // namespace yoke
