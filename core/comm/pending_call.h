// pending_call.h: a call of a group on its way from its caller to the engine.
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

// A call that was checked, and the work that tells of it; null where its caller waits.
struct IssuedCall {
    Collective call;
    Ref<Work> work;
    const ScriptLine *line = nullptr;
    Ref<LateCall> late = {};  // of tensors of a device that an engine of its own serves
    std::optional<Deadline> until =
        {};  // of a call of the core's own: its time ends there at the latest
};

// A call with its place in the order, and its tensors as the engine takes them.
struct PendingCall {
    Collective call;
    yoke_comm_signature signature{};
    const ScriptLine *line = nullptr;
    Deadline deadline = Deadline::after(0);
    uint64_t record = 0;  // its number among the records
    Ref<Work> work = {};  // null: it blocks its caller
    InUse in_use = {};    // finds writes by others to the call's tensors, from the issue on
    const void *order =
        nullptr;  // as InUse has it; null for a device's tensors: they are read before earlier calls write
    Ref<LateCall> late = {};  // then this call passes no bytes: ranks compare what they called
    std::exception_ptr late_failure = {};  // why the device does not have the late call
    Tensor in = {}, out = {};

    CurrentCall current() const
    {
        return {signature, describe(line), call.op == YOKE_COMM_RECV ? call.peer : -1};
    }
};
// Calls that are issued together, mostly one.
using PendingCalls = std::span<PendingCall>;

}  // namespace yoke
