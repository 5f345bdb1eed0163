// device_engine.h: the communicator of a group on a device, and the reason for its abort.
//
// Contract
//  * The group's Failure gives the cause to this class before other threads know the cause, and before the
//    communicator is aborted. So a thread that finds a call's work at its end knows whether the work was aborted. No
//    caller gets the error before the device has the failure.
//  * If a call was under way and its caller gets no report of the failure, the device reports the failure.
#pragma once

#include "core/comm/engine.h"
#include "core/comm/late/comm_lane.h"
#include "core/comm/staging.h"
#include "core/rendezvous/cause.h"

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

class DeviceEngine {
public:
    // Adds the communicator to the list for live_communicators. `whose` names the group's rank: "rank 0 of 2".
    DeviceEngine(std::string whose, std::shared_ptr<CommLane> lane, std::shared_ptr<Engine> engine,
                 std::shared_ptr<FailuresOfDevices> failures);
    ~DeviceEngine();
    DeviceEngine(const DeviceEngine &) = delete;
    DeviceEngine &operator=(const DeviceEngine &) = delete;

    const std::string &whose() const noexcept { return whose_; }
    Device &device() const noexcept { return lane_->device(); }
    CommLane &lane() const noexcept { return *lane_; }
    // Returns the communicator; null once the group has ended.
    std::shared_ptr<Engine> engine() const noexcept;
    // Releases the communicator without a wait. Calls under way may hold this object longer.
    void close() noexcept;

    // Takes the group's failure, once, and marks the communicator as aborted. If a call is under way, the device
    // reports the failure. note_told waits for `dumped`.
    void take(const Cause &cause, std::shared_future<void> dumped) noexcept;
    void abort() noexcept;
    bool is_aborted() const noexcept { return is_aborted_.load(std::memory_order_acquire); }
    // Returns the failure of the group; null if the communicator was not aborted.
    std::exception_ptr failure() const noexcept { return is_aborted() ? failure_ : nullptr; }
    // Returns the communicator's own failure; null while there is no failure. Only the watch thread calls this.
    std::optional<EngineFailure> async_error();
    // Notes that a caller got the failure, so the device does not report it. Waits for the dump first. Does nothing
    // before an abort.
    void note_told() noexcept;

    // Counts an issued call; note_ended counts its end. The device reports a failure only while calls are under way.
    void note_issued() noexcept { under_way_.fetch_add(1); }
    void note_ended() noexcept { under_way_.fetch_sub(1); }

private:
    void end_asking() noexcept;
    const std::string whose_;
    const std::shared_ptr<CommLane> lane_;  // outlives the engine, whose last call uses the stream
    const std::shared_ptr<FailuresOfDevices> failures_;
    mutable std::mutex mutex_;
    std::shared_ptr<Engine> engine_;
    mutable int asking_ = 0;  // threads in async_error; the last releases a closed engine
    bool is_closed_ = false;
    std::atomic<int> under_way_{0};
    std::exception_ptr failure_;  // with `dumped_`, written before is_aborted_
    std::shared_future<void> dumped_;
    std::atomic<bool> is_aborted_{false};
};

// Engines whose calls end when the group fails.
struct GroupEngines {
    std::weak_ptr<Engine> host;
    std::weak_ptr<DeviceEngine> device;
    bool are_made = false;  // the host engine is made
};

namespace detail {
// Adds the names of groups with a communicator on the device to `names`, at most `most`. Returns the number of all
// such groups.
int64_t live_communicators(Device &device, size_t most, std::vector<std::string> &names);
}  // namespace detail

}  // namespace yoke
