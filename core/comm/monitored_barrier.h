// monitored_barrier.h: barriers of a group that list who is missing.
//
// Each try has a number, and one end that counts for all ranks: either all have come, or the first rank whose time is
// over writes who had not come. Ranks that wait on, and ranks that come later, then meet at the next number. The group
// does not fail.
#pragma once

#include "core/comm/barrier_keys.h"
#include "core/comm/call_queue.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/store/store.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// The barriers of one group. Its lock guards two numbers, and no call is made under it.
class MonitoredBarrier {
public:
    MonitoredBarrier(const Members &members, const GroupKeys &keys, const Departures &departures,
                     Failure &failure, const CallQueue &calls, StoreCall &store_call);

    // Waits for all ranks. Raises YOKE_E_TIMEOUT with those that did not come by the deadline or, at once, YOKE_E_COMM
    // with those that have died.
    void wait(Deadline deadline);

private:
    // A view of the table for one wait.
    struct View {
        std::shared_ptr<Store> keys;
        size_t dead = 0;  // ranks that had died when it began
    };
    View open();
    std::vector<int32_t> end_of(uint64_t number, Deadline deadline);
    std::optional<std::vector<int32_t>> await(uint64_t number, bool &has_come, Deadline deadline);
    std::vector<int32_t> give_up(uint64_t number, Deadline deadline) const;
    uint64_t number_behind(uint64_t number);
    std::string describe_dead(uint64_t number, Store &keys) const;
    std::string describe_absent(const std::vector<int32_t> &ranks) const;
    void forget(uint64_t before) noexcept;

    const Members &members_;
    const GroupKeys &keys_;
    const Departures &departures_;
    Failure &failure_;
    const CallQueue &calls_;
    StoreCall &store_call_;
    const BarrierKeys barriers_;
    std::mutex mutex_;
    uint64_t last_ = 0;  // the try to which this rank came last
    uint64_t kept_ = 1;  // the first try whose key of this rank is still in the store
};

}  // namespace yoke
