// monitored_barrier.h: barriers of a group that list missing ranks.
//
// Each try has a number, and a single end for all ranks: either all ranks have joined, or the first rank at its
// deadline writes the list of missing ranks. Waiting ranks, and ranks that come later, go on to the next try. The
// group does not fail.
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

// Barriers of a group. The lock guards two numbers, and no call is made under it.
class MonitoredBarrier {
public:
    MonitoredBarrier(const Members &members, const GroupKeys &keys, const Departures &departures,
                     Failure &failure, const CallQueue &calls, StoreCall &store_call);

    // Waits for all ranks. Raises YOKE_E_TIMEOUT with the missing ranks at the deadline, or, at once, YOKE_E_COMM
    // with the dead ranks.
    void wait(Deadline deadline);

private:
    // View of the store, for a single wait.
    struct View {
        std::shared_ptr<Store> keys;
        size_t dead = 0;  // ranks dead before the view
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
    uint64_t last_ = 0;  // last try of this rank
    uint64_t kept_ = 1;  // first try with this rank's key still in the store
};

}  // namespace yoke
