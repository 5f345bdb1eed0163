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

    // Makes a Staged for a call on tensors of a device, so the tensors pass through host memory. Does nothing for
    // other calls.
    void prepare(Collective &call);
    // Copies the input of a staged call to host memory. The call has no number yet, so if memory is missing, this
    // raises OOM, and the group goes on without a notice to other ranks. If the device is lost, the group fails.
    void stage(Collective &call);
    // Runs a step of a call without a number. An error of the step is raised, and the group goes on. If the device is
    // lost, the group fails, and its cause is raised.
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
    // Runs the calls on the engine, in the caller's thread or the queue's. If the engine fails, fails the group and
    // raises the cause. If the group has failed since the issue, the engine refuses the calls, and the function
    // raises the cause.
    void run(PendingCalls calls);
    // Waits until the stream has a deferred call, at most until the call's deadline. If the stream does not get the
    // call, fails the group and raises the cause.
    void await_launch(const PendingCall &pending);
    // Raises the cause of the group's failure, or fails the group: earlier calls on the device have not ended in time.
    [[noreturn]] void raise_held_up(const PendingCall &pending);
    bool is_failed() const noexcept { return failure_.is_failed(); }
    // Returns the group's record of failures reported by devices or to callers.
    const std::shared_ptr<FailuresOfDevices> &failures() const noexcept
    {
        return staging_.failures();
    }
    // Returns memory that peers reach without a copy. All ranks call this together: if a rank cannot, the group
    // fails, and the cause is raised.
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
