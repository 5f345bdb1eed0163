// Calls of a group as they run.
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/comm/group.h"
#include "core/ops/ops.h"
#include "core/tensor/snapshot.h"

#include <new>
#include <utility>

namespace yoke {

namespace {

Tensor dense(const Tensor &tensor)
{
    return !tensor.present() || tensor->contiguous ? tensor : ops::contiguous(*tensor);
}

}  // namespace

std::exception_ptr Group::perform(Calls calls) noexcept
{
    std::exception_ptr failure;
    try {
        execute(calls);
    } catch (...) {
        failure = std::current_exception();
    }
    note_ended(calls, !failure);
    for (Pending &each : calls) {
        std::unique_ptr<Work::Tail> tail;
        if (each.call.staged.present()) [[unlikely]]
            tail = each.call.staged->end(failure, !each.work.present());
        each.in_use = {};
        each.call.in = each.in = {}, each.call.out = each.out = {}, each.call.staged = {};
        if (each.work.present()) each.work->finish(failure, std::move(tail));
    }
    return failure;
}

// In a group that has failed since they were queued the engine refuses them.
void Group::execute(Calls calls)
{
    const NoGrad no_grad;
    for (Pending &each : calls) begin(each);
    call_engine(calls);
    for (const Pending &each : calls) each.in_use.check(each.call.name());
    for (Pending &each : calls) end(each);
}

void Group::note_ended(Calls calls, bool is_done) noexcept
{
    const double now = monotonic_seconds();
    const std::lock_guard lock(mutex_);
    is_running_ = false;
    for (const Pending &each : calls) {
        if (CallRecord *record = records_.find(each.record)) {
            record->ended_s = now;
            record->state = is_done ? CallRecord::kDone : CallRecord::kFailed;
        }
    }
    changed_.notify_all();
}

// Tensors of a device have been read before the calls ahead of theirs write.
const void *Group::order_of(const Collective &call) const noexcept
{
    return call.staged.present() ? nullptr : this;
}

void Group::begin(Pending &pending)
try {
    const Collective &call = pending.call;
    if (call.staged.present()) [[unlikely]]
        return begin_staged(pending);
    const bool is_one = call.in.get() == call.out.get(),
               has_both = call.in.present() && call.out.present();
    pending.in = dense(call.in);
    pending.out = is_one ? pending.in : dense(call.out);
    if (!is_one && has_both && overlaps_in_part(*pending.in, *pending.out, call.op, rank()))
        pending.in = ops::clone(*pending.in);
    if (pending.out.present()) before_write(*pending.out->storage);
} catch (const Error &error) {
    fail_alone(error.status(), error.what(), pending);
} catch (const std::bad_alloc &) {
    fail_alone(YOKE_E_OOM, kNoMemoryText, pending);
}

void Group::end(Pending &pending)
{
    const Collective &call = pending.call;
    if (call.staged.present()) [[unlikely]]
        return end_staged(pending);
    if (!pending.out.present() || call.op == YOKE_COMM_SEND) return;
    if (pending.out.get() == call.out.get())
        return pending.in_use.end_written(*call.out, order_of(call), call.name());
    const InUse::Writing writing(*call.out, order_of(call));
    ops::copy_(*call.out, *pending.out);
}

yoke_collective Group::record_of(const Pending &pending)
{
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
    record.in = pending.in.present() ? pending.in->data : nullptr;
    record.out = pending.out.present() ? pending.out->data : nullptr;
    if (call.op == YOKE_COMM_BROADCAST && !is_root) record.in = nullptr;
    if (call.op == YOKE_COMM_REDUCE && !is_root) record.out = nullptr;
    record.timeout_s = pending.deadline.remaining_s();
    record.find_gone = [](void *group, const int32_t *ranks, int32_t count, int32_t died) {
        return static_cast<const Group *>(group)->find_gone({ranks, static_cast<size_t>(count)},
                                                            died != 0);
    };
    record.user = this;
    return record;
}

void Group::call_engine(Calls calls)
{
    try {
        Engine::Together together(calls.size() > 1 ? engine_.get() : nullptr);
        for (const Pending &each : calls) engine_->call(record_of(each), together);
        together.end();
    } catch (const EngineFailure &failure) {
        fail_call(failure, calls);
    }
}

}  // namespace yoke
