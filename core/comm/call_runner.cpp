#include "core/comm/call_runner.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/comm/keep_for_good.h"
#include "core/ops/ops.h"
#include "core/tensor/snapshot.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace yoke {

namespace {

Tensor dense(const Tensor &tensor)
{
    return !tensor.present() || tensor->contiguous ? tensor : ops::contiguous(*tensor);
}

std::vector<Ref<Storage>> storages_of(PendingCalls calls)
{
    std::vector<Ref<Storage>> storages;
    for (const PendingCall &each : calls) {
        if (each.in.present()) storages.push_back(each.in->storage);
        if (each.out.present() && each.out.get() != each.in.get())
            storages.push_back(each.out->storage);
    }
    return storages;
}

// Returns, of calls issued together, this rank's call that meets the faulty rank's call. A send of the faulty rank
// meets this rank's recv from the faulty rank. If no call meets the faulty rank's call, returns the first collective
// or message with the faulty rank. If there is no such call either, returns the first call.
const PendingCall &met_by(const yoke_comm_fault &fault, PendingCalls calls) noexcept
{
    const auto is_met = [&](const PendingCall &each) {
        return each.signature.sequence == fault.theirs.sequence &&
               each.signature.op == fault.theirs.op && each.call.op != YOKE_COMM_SEND &&
               (each.call.op != YOKE_COMM_RECV || each.call.peer == fault.rank);
    };
    const auto concerns = [&](const PendingCall &each) {
        return each.signature.op != YOKE_COMM_SEND || each.call.peer == fault.rank;
    };
    auto met = std::ranges::find_if(calls, is_met);
    if (met == calls.end()) met = std::ranges::find_if(calls, concerns);
    return met == calls.end() ? calls[0] : *met;
}

// Returns this rank's call for the report of a fault: the call that meets the faulty rank's call. If the two calls
// are alike, the ranks differ in the order of a coalesce. Then returns this rank's earlier call of another kind, with
// the met call in `before`.
CurrentCall current_call_of(const yoke_comm_fault &fault, PendingCalls calls)
{
    const PendingCall &met = met_by(fault, calls);
    const bool is_alike = memcmp(&met.signature, &fault.theirs, sizeof met.signature) == 0;
    if (fault.kind != YOKE_COMM_FAULT_MISMATCH || !is_alike) return met.current();
    const bool is_send = met.signature.op == YOKE_COMM_SEND;
    for (const PendingCall *each = &met; each != calls.data(); --each) {
        const PendingCall &before = each[-1];
        if ((before.signature.op == YOKE_COMM_SEND) == is_send) continue;
        if (!is_send && before.call.peer != fault.rank) continue;
        CurrentCall current = before.current();
        current.before = told_as(met.current());
        return current;
    }
    return met.current();
}

}  // namespace

CallRunner::CallRunner(const Members &members, const GroupKeys &keys, const Departures &departures,
                       Failure &failure)
    : members_(members),
      keys_(keys),
      departures_(departures),
      failure_(failure),
      blame_(members, keys, departures),
      staging_(format("rank %d of %d", members.rank, members.size()), failure.devices())
{
}

// ---- Before a call has a number ---------------------------------------------------------------------------------

void CallRunner::prepare(Collective &call)
{
    if (Device *device = call.device(); device && !device->host) [[unlikely]]
        call.staged =
            Staged::make(staging_, *device, uses_of(call, {members_.rank, members_.size()}));
}

void CallRunner::stage(Collective &call)
{
    if (!call.staged.present()) [[likely]]
        return;
    stage_by(call, [&] { call.staged->begin(call.in, call.out); });
}

// ---- A call as it runs ------------------------------------------------------------------------------------------

void CallRunner::run(PendingCalls calls)
{
    const NoGrad no_grad;
    for (PendingCall &each : calls) begin(each);
    call_engine(calls);
    for (const PendingCall &each : calls) each.in_use.check(each.call.name());
    for (PendingCall &each : calls) end(each);
}

void CallRunner::begin(PendingCall &pending)
try {
    const Collective &call = pending.call;
    if (call.staged.present()) [[unlikely]]
        return begin_staged(pending);
    const bool is_one = call.in.get() == call.out.get(),
               has_both = call.in.present() && call.out.present();
    pending.in = dense(call.in);
    pending.out = is_one ? pending.in : dense(call.out);
    if (!is_one && has_both && overlaps_in_part(*pending.in, *pending.out, call.op, members_.rank))
        pending.in = ops::clone(*pending.in);
    if (pending.out.present()) before_write(*pending.out->storage);
} catch (const Error &error) {
    raise_own(error.status(), error.what(), pending);
} catch (const std::bad_alloc &) {
    raise_own(YOKE_E_OOM, kNoMemoryText, pending);
}

void CallRunner::end(PendingCall &pending)
{
    const Collective &call = pending.call;
    if (call.staged.present()) [[unlikely]]
        return end_staged(pending);
    if (!pending.out.present() || call.op == YOKE_COMM_SEND) return;
    if (pending.out.get() == call.out.get())
        return pending.in_use.end_written(*call.out, pending.order, call.name());
    const InUse::Writing writing(*call.out, pending.order);
    ops::copy_(*call.out, *pending.out);
}

void CallRunner::begin_staged(PendingCall &pending)
{
    const Staged &staged = *pending.call.staged;
    try {
        const auto is_over = [this] { return failure_.is_failed(); };
        if (!staged.wait_until_read(pending.deadline, is_over) && !failure_.is_failed())
            fail(YOKE_E_TIMEOUT,
                 "%s did not finish earlier work in time, so the call did not start",
                 staged.device().name.c_str());
    } catch (const Error &error) {
        raise_own(error.status(), error.what(), pending);
    }
    failure_.raise_amid(pending.call.name());
    pending.in = staged.in();
    pending.out = staged.out();
}

void CallRunner::end_staged(PendingCall &pending)
{
    Staged &staged = *pending.call.staged;
    try {
        staged.bring_back(pending.call.out, pending.call.name(), std::move(pending.in_use));
        if (!pending.work.present()) staged.follow();
    } catch (const Error &error) {
        raise_own(error.status(), error.what(), pending);
    }
}

// Returns the engine's record of a call. For a deferred call, the record passes no elements: by a barrier or an empty
// message, the ranks compare their calls.
yoke_collective CallRunner::record_of(const PendingCall &pending) const
{
    yoke_collective record = yoke::record_of(pending.call, pending.in, pending.out, members_.rank);
    if (pending.late.present()) {
        record.count = 0;
        if (!pending.call.is_message()) record.op = YOKE_COMM_BARRIER;
    }
    record.signature = &pending.signature;
    record.timeout_s = pending.deadline.remaining_s();
    record.find_gone = [](void *blame, const int32_t *ranks, int32_t count, int32_t died) {
        return static_cast<const Blame *>(blame)->find_gone({ranks, static_cast<size_t>(count)},
                                                            died != 0);
    };
    record.user = const_cast<Blame *>(&blame_);
    return record;
}

void CallRunner::call_engine(PendingCalls calls)
{
    try {
        Engine::Together together(calls.size() > 1 ? engine_.get() : nullptr);
        for (const PendingCall &each : calls) engine_->call(record_of(each), together);
        together.end();
    } catch (const EngineFailure &failure) {
        raise_fault(failure, calls);
    }
}

void CallRunner::await_launch(const PendingCall &pending)
{
    const std::optional<bool> is_given = pending.late->await_launch(pending.deadline);
    if (is_given == true) return;
    // The thread that launches the call fails the group, if need be after a wait for the dead rank.
    for (int i = 0; is_given && i < 3; ++i) failure_.await(pending.call.name());
    // Names this rank as the culprit and blames no other rank, because this rank is late itself.
    raise_own(
        is_given ? YOKE_E_CANCELLED : YOKE_E_TIMEOUT,
        is_given
            ? "the engine of the device did not take the call"
            : "the engine of the device did not return from the call in time; the engine or the driver hangs on this rank",
        pending);
}

void CallRunner::raise_held_up(const PendingCall &pending)
{
    failure_.raise_if_failed(pending.call.name());
    raise_own(
        YOKE_E_TIMEOUT,
        "earlier calls on the device have not ended in time, and the driver does not answer whether they have; look at the kernel's log (dmesg) and nvidia-smi",
        pending);
}

void *CallRunner::allocate(uint64_t bytes)
try {
    return engine_->allocate(bytes);
} catch (const EngineFailure &found) {
    failure_.fail_alone(
        "empty", {found.status, no_memory_text("empty", members_.self(), bytes, found.text)});
}

// ---- Where it fails ---------------------------------------------------------------------------------------------

void CallRunner::raise_fault(const EngineFailure &failure, PendingCalls calls)
{
    if (failure.fault.keeps_memory) keep_for_good(storages_of(calls), engine_->name());
    const char *call = calls.front().call.name();
    bool can_agree = true;
    const Cause mine = blame_.cause_of(failure, current_call_of(failure.fault, calls), &can_agree);
    if (failure.fault.kind == YOKE_COMM_FAULT_DIED && !departures_.has_gone(departures_.server()) &&
        keys_.is_half_made())
        failure_.await(call);
    if (failure.fault.kind == YOKE_COMM_FAULT_ABORTED) failure_.raise_amid(call);
    if (!can_agree) failure_.fail_with(mine);
    failure_.fail_alone(call, mine);
}

void CallRunner::raise_own(yoke_status status, const char *text, const PendingCall &pending)
{
    failure_.fail_alone(pending.call.name(), yoke::cause_of({}, status, text, pending.current(),
                                                            members_.self(), members_.ranks));
}

}  // namespace yoke
