// device_calls.h: what a group does with calls on tensors of a device that an engine of that device serves.
//
// The group's communicator on a device is made at the first collective with a tensor of the device, over the host's
// engine, so that a rank that does something else is named. After that each call is launched by its caller, and the
// group's thread makes a call without bytes over the host's engine, by which the ranks compare what they called.
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
    // Function that returns what each rank gives to a call that the core makes for itself, in the order of ranks.
    using Exchange = std::function<std::vector<int64_t>(
        const yoke_comm_signature &said, std::vector<int64_t> mine, std::optional<Deadline> until)>;
    DeviceCalls(const Members &members, const GroupOptions &options, const GroupKeys &keys,
                const Departures &departures, Failure &failure, CallQueue &calls,
                Exchange exchange);
    // Takes the choice, before the first call.
    void take(DeviceChoice choice) { choice_ = std::move(choice); }
    // Lets go of the communicator. Nobody waits for it.
    void close() noexcept;

    // Returns the communicator; null before it is made.
    std::shared_ptr<DeviceEngine> engine() const noexcept
    {
        return is_made_.load(std::memory_order_acquire) ? engine_ : nullptr;
    }
    // Returns the communicator on that device, and makes it if there is none; null if the host's engine serves the
    // device. Raises YOKE_E_VALUE if the group has one on another device. `said`: as which call the ranks make it.
    // `until`: the time of the making; else ranks come in the time of a call, and then have that of an init.
    std::shared_ptr<DeviceEngine> open(Device &device, const char *call, yoke_comm_signature said,
                                       std::optional<Deadline> until = {});
    // Raises YOKE_E_VALUE for a device of the kind that is not the group's.
    void check_device(const Device &device, const char *call) const;
    // Returns whether calls of the device are not at their end.
    bool has_pending() const noexcept { return calls_.has_late_pending(); }
    // Returns whether the group has a communicator on the device, or makes it at the first need.
    bool may_serve(const Device &device) const noexcept;
    // Returns null if the call is to be staged.
    Ref<LateCall> begin(const Collective &call);

    // Calls of one group, in their order; some may be the host's.
    struct Batch {
        DeviceCalls *of;
        std::span<IssuedCall> calls;
        std::vector<Ref<Work>> awaited = {};  // of the host's calls that block
        bool were_issued = false;
    };
    // Issues the calls of all groups, and launches those that are late together. Waits for its turn on the streams for
    // as long as a call has time; then the groups fail with the name of the call that has the turn. The caller's
    // current stream comes behind calls that block. If an engine refuses them, their groups fail, and the cause is
    // raised.
    static void launch(std::span<Batch> batches);

    // Returns memory that peers reach without a copy. All ranks make it together: if one cannot, the group fails.
    void *allocate(DeviceEngine &engine, uint64_t bytes, const yoke_comm_signature &said);

    // Fails the group with a call that is in flight. In a short thread.
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
