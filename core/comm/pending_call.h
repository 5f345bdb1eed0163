// pending_call.h: a group's call between its caller and the engine.
#pragma once

#include "core/base/deadline.h"
#include "core/base/script.h"
#include "core/base/work.h"
#include "core/comm/cause_of.h"
#include "core/comm/collective.h"
#include "core/comm/in_use.h"
#include "core/comm/late/late_call.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <span>

namespace yoke {

// Checked call, and its work; null if the caller waits.
struct IssuedCall {
    Collective call;
    Ref<Work> work;
    const ScriptLine *line = nullptr;
    Ref<LateCall> late = {};             // for tensors of a device with its own engine
    std::optional<Deadline> until = {};  // latest end of an internal call of the core
};

// Call with its place in the order, and its tensors in the engine's form.
struct PendingCall {
    Collective call;
    yoke_comm_signature signature{};
    const ScriptLine *line = nullptr;
    Deadline deadline = Deadline::after(0);
    uint64_t record = 0;  // number of its record
    Ref<Work> work = {};  // null: the call blocks its caller
    InUse in_use = {};    // finds foreign writes to the call's tensors, from the issue on
    const void *order =
        nullptr;  // as in InUse; null for device tensors, which are read before earlier calls write
    Ref<LateCall> late = {};  // if present, the ranks only compare this call, without bytes
    std::exception_ptr late_failure = {};  // reason if the device does not have the deferred call
    Tensor in = {}, out = {};

    CurrentCall current() const
    {
        return {signature, describe(line), call.op == YOKE_COMM_RECV ? call.peer : -1};
    }
};
// Calls issued together, usually a single call.
using PendingCalls = std::span<PendingCall>;

}  // namespace yoke
