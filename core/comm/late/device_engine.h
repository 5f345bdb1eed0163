// device_engine.h: the communicator of a group on a device, and why it was aborted.
//
// Contract
//  * The group's Failure gives the cause before it is known elsewhere, and before the communicator is aborted. So
//    whoever finds a call's work at its end knows whether the work was aborted, and no caller is raised before the
//    device has the failure.
//  * If a call was under way whose caller is told nothing, the device tells the failure.
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
    // `whose`: "rank 0 of 2".
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
    // Ends the communicator, for which nobody waits. Calls that are under way may hold this object for longer.
    void close() noexcept;

    // Takes why the group has failed, once, and has the device tell it if a call is under way. Who is told waits for
    // the dump.
    void take(const Cause &cause, std::shared_future<void> dumped) noexcept;
    void abort() noexcept;
    bool is_aborted() const noexcept { return is_aborted_.load(std::memory_order_acquire); }
    // Returns what the group failed with; null if the communicator was not aborted.
    std::exception_ptr failure() const noexcept { return is_aborted() ? failure_ : nullptr; }
    // Returns why the communicator has failed by itself; nothing while it is well. For the watch thread.
    std::optional<EngineFailure> async_error();
    // Notes that somebody is told of the failure: the device does not tell it then.
    void note_told() noexcept;

    // Calls that were issued and are not at their end.
    void note_issued() noexcept { under_way_.fetch_add(1); }
    void note_ended() noexcept { under_way_.fetch_sub(1); }

private:
    void end_asking() noexcept;
    const std::string whose_;
    const std::shared_ptr<CommLane> lane_;  // outlives the engine, whose last call is on its stream
    const std::shared_ptr<FailuresOfDevices> failures_;
    mutable std::mutex mutex_;
    std::shared_ptr<Engine> engine_;
    mutable int asking_ = 0;  // in async_error: the engine is let go of behind it
    bool is_closed_ = false;
    std::atomic<int> under_way_{0};
    std::exception_ptr failure_;  // these two are written before is_aborted_
    std::shared_future<void> dumped_;
    std::atomic<bool> is_aborted_{false};
};

// Engines whose calls end when their group fails.
struct GroupEngines {
    std::weak_ptr<Engine> host;
    std::weak_ptr<DeviceEngine> device;
    bool are_made = false;  // the host's is
};

namespace detail {
// Adds the names of groups that have a communicator on the device, at most `most`. Returns how many there are.
int64_t live_communicators(Device &device, size_t most, std::vector<std::string> &names);
}  // namespace detail

}  // namespace yoke
