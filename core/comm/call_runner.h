// call_runner.h: the run of a group's call on the group's engine.
//
// The runner makes tensors dense or stages them, and gives the engine a record. If the engine fails, the group fails.
#pragma once

#include "core/base/error.h"
#include "core/comm/blame.h"
#include "core/comm/failure.h"
#include "core/comm/pending_call.h"
#include "core/comm/staging.h"

#include <memory>
#include <string>

namespace yoke {

// The queue runs its calls in sequence, so the runner has no lock. `prepare` and `stage` run in the threads of
// callers.
class CallRunner {
public:
    CallRunner(const Members &members, const GroupKeys &keys, const Departures &departures,
               Failure &failure);

    // Takes the engine, before the first call. If a tensor uses memory of the engine, the engine outlives the group.
    void attach(std::shared_ptr<Engine> engine) { engine_ = std::move(engine); }
    const std::shared_ptr<Engine> &engine() const noexcept { return engine_; }

    // Gives a call on tensors of a device a Staged; does nothing for other calls.
    void prepare(Collective &call);
    // Copies the input of a call on tensors of a device. The call has no number yet, so if memory is missing, the
    // group goes on and the other ranks are not notified. If the device is lost, the group fails.
    void stage(Collective &call);
    // Takes a step of a call without a number, as `stage` does.
    template <class Step>
    void stage_by(const Collective &call, Step &&step)
    {
        try {
            step();
        } catch (const Error &error) {
            if (error.status() != YOKE_E_DEVICE_LOST) throw;
            failure_.fail_alone(
                call.name(),
                {error.status(), format("%s: %s failed: %s", call.name(),
                                        describe(members_.self()).c_str(), error.what())});
        }
    }
    // Runs the calls, in the caller's thread or the queue's. If the group has failed since their issue, the engine
    // refuses them, and the function raises the cause.
    void run(PendingCalls calls);
    // Waits until the device has a call made by all ranks. Raises the reason if the device does not get the call.
    void await_launch(const PendingCall &pending);
    bool is_failed() const noexcept { return failure_.is_failed(); }
    // Returns the failures reported by devices of this group's calls.
    const std::shared_ptr<FailuresOfDevices> &failures() const noexcept
    {
        return staging_.failures();
    }
    // Returns memory that peers reach without a copy. All ranks call this together: if a rank cannot, the group
    // fails.
    void *allocate(uint64_t bytes);

private:
    void begin(PendingCall &pending);
    void end(PendingCall &pending);
    void begin_staged(PendingCall &pending);
    void end_staged(PendingCall &pending);
    yoke_collective record_of(const PendingCall &pending) const;
    void call_engine(PendingCalls calls);
    [[noreturn]] void raise_fault(const EngineFailure &failure, PendingCalls calls);
    [[noreturn]] void raise_own(yoke_status status, const char *text, const PendingCall &pending);

    const Members &members_;
    const GroupKeys &keys_;
    const Departures &departures_;
    Failure &failure_;
    const Blame blame_;
    Staging staging_;
    std::shared_ptr<Engine> engine_;
};

}  // namespace yoke
