// device_calls.h: a group's calls on tensors of a device, served by an engine of the device.
//
// The first collective with a tensor of the device makes the group's communicator there, over the host engine. So a
// rank in another call is found and named. After that, each caller launches its call. The group's thread also makes a
// call without bytes over the host engine, by which the ranks compare their calls.
#pragma once

#include "core/comm/blame.h"
#include "core/comm/call_queue.h"
#include "core/comm/failure.h"
#include "core/comm/late/device_choice.h"
#include "core/comm/late/late_call.h"
#include "core/comm/making.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace yoke {

struct HeldLane;

class DeviceCalls {
public:
    // Function that returns each rank's numbers in an internal call of the core, in the order of ranks.
    using Exchange = std::function<std::vector<int64_t>(
        const yoke_comm_signature &said, std::vector<int64_t> mine, std::optional<Deadline> until)>;
    DeviceCalls(const Members &members, const GroupOptions &options, const GroupKeys &keys,
                const Departures &departures, Failure &failure, CallQueue &calls,
                Exchange exchange);
    // Takes the ranks' choice of an engine, before the first call.
    void take(DeviceChoice choice) { choice_ = std::move(choice); }
    // Releases the communicator, and does not wait for it.
    void close() noexcept;

    // Returns the communicator; null before the making.
    std::shared_ptr<DeviceEngine> engine() const noexcept
    {
        return is_made_.load(std::memory_order_acquire) ? engine_ : nullptr;
    }
    // Returns the communicator on the device, and makes it at first need; null if the host engine serves the device.
    // Raises YOKE_E_VALUE if the group has a communicator on another device. `said` is the signature of the ranks'
    // call. `until` is the deadline of the making. Without a deadline, ranks must come within the time of a call, and
    // then have the time of an init.
    std::shared_ptr<DeviceEngine> open(Device &device, const char *call, yoke_comm_signature said,
                                       std::optional<Deadline> until = {});
    // Raises YOKE_E_VALUE if the group's communicator is on another device of the same kind.
    void check_device(const Device &device, const char *call) const;
    // Returns whether calls on the device have not ended.
    bool has_pending() const noexcept { return calls_.has_late_pending(); }
    // Returns whether the group's communicator is on the device, or would be made there at first need.
    bool may_serve(const Device &device) const noexcept;
    // Makes a deferred call on tensors of a device, and the group's communicator at first need. Returns null if the
    // call is to be staged, or has no tensors of a device.
    Ref<LateCall> begin(const Collective &call);

    // Calls of a group, in their order; some may be calls in host memory.
    struct Batch {
        DeviceCalls *of;
        std::span<IssuedCall> calls;
        std::vector<Ref<Work>> awaited = {};  // works of blocking calls in host memory
        bool were_issued = false;
    };
    // Issues the calls of all groups, and launches the deferred calls together. Waits for the turns on the streams,
    // at most the time of a call. After that, the groups fail with the call that holds the turn. The caller's current
    // stream comes behind blocking calls. If an engine refuses the calls, their groups fail, and the cause is raised.
    static void launch(std::span<Batch> batches);

    // Returns memory of the device that peers reach without a copy. All ranks call this together: if a rank cannot,
    // the group fails, and the cause is raised.
    void *allocate(DeviceEngine &engine, uint64_t bytes, const yoke_comm_signature &said);

    // Fails the group because a call on the device has failed. If another thread is about to report the reason, waits
    // for that report first, at most 2 s. So the watch thread must not call this.
    void note_fault(const LateCall &call, const EngineFailure &failure) noexcept;

private:
    const DeviceEngine *known() const noexcept
    {
        return is_made_.load(std::memory_order_acquire) ? engine_.get() : nullptr;
    }
    std::shared_ptr<DeviceEngine> make(Device &device, const char *call,
                                       const yoke_comm_signature &said,
                                       std::optional<Deadline> until);
    std::shared_ptr<Engine> connect_to(Device &device, const yoke_comm_signature &said,
                                       std::optional<Deadline> until);
    void tell_staged(const Collective &call, const Device &device);
    std::string why_staged(const Device &device) const;
    void fail(const EngineFailure &failure, const LateCall &call);
    void fail(const EngineFailure &failure, const CurrentCall &current);
    void note_held(const LateCall &call, const HeldLane &held, Deadline until);

    const Members &members_;
    const GroupOptions &options_;
    Failure &failure_;
    const Blame blame_;
    CallQueue &calls_;
    const Exchange exchange_;
    DeviceChoice choice_;
    std::mutex making_;                     // held while the communicator is made
    std::shared_ptr<DeviceEngine> engine_;  // written once, before is_made_
    std::atomic<bool> is_made_{false};
    std::atomic<bool> has_told_staged_{false};
};

}  // namespace yoke
