// barrier_keys.h: keys in the store for monitored barriers.
#pragma once

#include "core/base/deadline.h"
#include "core/rendezvous/members.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace yoke {

// Keys of a group's barriers. Barriers count from 1, and each try of a barrier has a number of its own. Any thread
// may call the functions: there is no lock. Functions raise the store's errors, unless they are noexcept.
class BarrierKeys {
public:
    explicit BarrierKeys(const Members &members) : members_(members) {}

    // Returns a new view of the store for a single wait. If another thread ends the view, the wait ends, and the
    // store of the group goes on.
    std::shared_ptr<Store> view() const;
    // Publishes this rank's arrival. The last rank to join ends the barrier.
    void come_to(uint64_t number, Deadline deadline) const;
    // Returns whether a barrier has ended, with or without all ranks.
    bool has_ended(uint64_t number, Store &view, Deadline deadline) const;
    // Waits until the barrier has ended. Returns the ranks missing at the end; an empty list if all ranks joined.
    std::vector<int32_t> await_end(uint64_t number, Store &view, Deadline deadline) const;
    std::vector<int32_t> missing_at(uint64_t number, Store &view) const;
    // Ends a barrier without the missing ranks, if the barrier has not ended yet. Returns the missing ranks, as
    // published by the first rank that ended the barrier; an empty list if all ranks joined.
    std::vector<int32_t> give_up(uint64_t number) const;
    // Returns the number of the first barrier that no rank has given up, or a lower number; 0 if no barrier was given
    // up.
    uint64_t next() const;
    // Returns whether a barrier has ended with all ranks; false if the store does not answer.
    bool have_all_come(uint64_t number) const noexcept;
    // Removes this rank's keys of the barriers from `first` up to `before`; rank 0 also removes the shared keys.
    void forget(uint64_t first, uint64_t before) const noexcept;

private:
    const Members &members_;
};

}  // namespace yoke
