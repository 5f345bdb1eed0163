// call_runner.h: calls of a group on its engine: tensors made dense or staged, the record that the engine takes, and
// what becomes of the group when the engine fails.
#pragma once

#include "core/comm/blame.h"
#include "core/comm/call_queue.h"
#include "core/comm/failure.h"
#include "core/comm/staging.h"

#include <memory>
#include <string>

namespace yoke {

class CallRunner {
public:
    CallRunner(const Members &members, const GroupKeys &keys, const Departures &departures,
               Failure &failure);

    // From here on calls may run. The engine lives on with the memory that it lent.
    void attach(std::shared_ptr<Engine> engine) { engine_ = std::move(engine); }
    const std::shared_ptr<Engine> &engine() const noexcept { return engine_; }

    // Takes what the call needs on a device, where its tensors are a device's, before it has a number: the other ranks
    // are not told of what fails here, but of a lost device.
    void prepare(Collective &call);
    void stage(Collective &call);
    // Runs them, in the caller or in the queue's thread. In a group that has failed since they were issued the engine
    // refuses them.
    void run(PendingCalls calls);
    // Returns memory that peers reach without a copy. All ranks have agreed to make it, so what fails fails the group.
    void *allocate(uint64_t bytes);

private:
    void begin(PendingCall &pending);
    void end(PendingCall &pending);
    void begin_staged(PendingCall &pending);
    void end_staged(PendingCall &pending);
    yoke_collective record_of(const PendingCall &pending);
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
