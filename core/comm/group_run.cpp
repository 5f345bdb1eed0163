// Calls of a group as they run, and what becomes of it when one fails.
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/group.h"
#include "core/launch/error_file.h"
#include "core/ops/ops.h"
#include "core/tensor/snapshot.h"

#include <utility>

namespace yoke {

namespace {

// An asynchronous call reads and writes memory of which others know.
void check_not_written(const Tensor &tensor, uint32_t version, const char *call)
{
    if (version_of(tensor) == version) return;
    const char *writer = tensor->storage->last_writer();
    fail(
        YOKE_E_STATE,
        "%s: a tensor of this call was written by %s while it was under way, so that its result is undefined; wait for the work first",
        call, writer ? writer : "the host");
}

Tensor dense(const Tensor &tensor)
{
    return !tensor.present() || tensor->contiguous ? tensor : ops::contiguous(*tensor);
}

}  // namespace

// ---- Running one ------------------------------------------------------------------------------------------------

void Group::execute(Pending &pending)
{
    struct AtEnd {
        ~AtEnd()
        {
            const std::lock_guard lock(group.mutex_);
            group.is_running_ = false;
            if (CallRecord *record = group.records_.find(number)) {
                record->ended_s = monotonic_seconds();
                record->state = is_done ? CallRecord::kDone : CallRecord::kFailed;
            }
            group.changed_.notify_all();
        }
        Group &group;
        const uint64_t number;
        bool is_done = false;
    } at_end{*this, pending.record};
    {
        const std::lock_guard lock(mutex_);
        if (cause_) cause_->raise();
        if (CallRecord *record = records_.find(pending.record)) {
            record->began_s = monotonic_seconds();
            record->state = CallRecord::kRunning;
        }
    }
    const NoGrad no_grad;
    const Tensor in = dense(pending.call.in);
    const bool is_one = pending.call.in.get() == pending.call.out.get();
    const Tensor out = is_one ? in : dense(pending.call.out);
    call_engine(pending, in, out);
    check_not_written(pending.call.in, pending.versions[0], pending.call.name());
    check_not_written(pending.call.out, pending.versions[1], pending.call.name());
    if (out.present() && pending.call.op != YOKE_COMM_SEND) {
        if (out.get() != pending.call.out.get())
            ops::copy_(*pending.call.out, *out);
        else
            out->storage->note_written(pending.call.name());
    }
    at_end.is_done = true;
}

void Group::call_engine(Pending &pending, const Tensor &in, const Tensor &out)
{
    if (out.present()) before_write(*out->storage);
    const Collective &call = pending.call;
    const bool is_root = call.peer == rank();
    yoke_collective record{};
    record.struct_size = sizeof record;
    record.op = call.op;
    record.signature = &pending.signature;
    record.dtype = call.dtype;
    record.reduction = call.reduction;
    record.peer = call.peer;
    record.count = call.count;
    record.in = in.present() ? in->data : nullptr;
    record.out = out.present() ? out->data : nullptr;
    if (call.op == YOKE_COMM_BROADCAST && !is_root) record.in = nullptr;
    if (call.op == YOKE_COMM_REDUCE && !is_root) record.out = nullptr;
    record.timeout_s = pending.deadline.remaining_s();
    try {
        engine_->call(record);
    } catch (const EngineFailure &failure) {
        fail_call(failure, pending);
    }
}

// ---- Failure ----------------------------------------------------------------------------------------------------

void Group::fail_call(const EngineFailure &failure, const Pending &pending)
{
    const Cause mine = cause_of(failure.fault, failure.status, failure.text, pending.doing(),
                                members_.self(), members_.ranks);
    const bool is_aborted = failure.fault.kind == YOKE_COMM_FAULT_ABORTED;
    {
        const std::lock_guard lock(mutex_);
        if (is_aborted && cause_) cause_->raise();
    }
    fail_with(agreed(mine));
    const std::lock_guard lock(mutex_);
    cause_->raise();
}

// The first rank that asks for it publishes its cause; the others take that, or, where nobody can be asked any more,
// their own.
Cause Group::agreed(Cause mine) noexcept
{
    constexpr double kPatience = 1;
    try {
        return Cause::decode(
            members_.store->set_once("cause", mine.encode(), Deadline::after(kPatience)));
    } catch (const std::exception &error) {
        log(LogLevel::kInfo, "the ranks of a group could not agree why it failed: %s",
            error.what());
        return mine;
    }
}

// The launcher is told before anybody is raised, and may end the process.
void Group::fail_with(const Cause &cause) noexcept
{
    {
        const std::lock_guard lock(mutex_);
        if (cause_) return;
    }
    tell_launcher(cause.text);  // without the lock: it may log
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = cause;
    if (engine_) engine_->abort();
    changed_.notify_all();
}

void Group::lose(const Cause &cause) noexcept
{
    // Rank 0's table is here, and takes it at once; the others lose rank 0 alone, each by itself.
    fail_with(members_.met && members_.met->server ? agreed(cause) : cause);
}

void Group::abort(const std::string &reason) noexcept
{
    Cause cause{YOKE_E_CANCELLED, "the group was ended by abort() on " +
                                      yoke::describe(members_.self()) +
                                      (reason.empty() ? "" : ": " + reason)};
    fail_with(agreed(std::move(cause)));
}

}  // namespace yoke
