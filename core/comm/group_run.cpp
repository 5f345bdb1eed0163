// Calls of a group as they run, and what becomes of it when one fails.
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/group.h"
#include "core/launch/error_file.h"
#include "core/ops/ops.h"
#include "core/tensor/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace yoke {

namespace {

void check_not_written(const Tensor &tensor, uint32_t version, const char *call)
{
    if (tensor.present()) yoke::check_not_written(*tensor->storage, version, call);
}

Tensor dense(const Tensor &tensor)
{
    return !tensor.present() || tensor->contiguous ? tensor : ops::contiguous(*tensor);
}

// Of calls that failed, and that their engine cannot take back: a network may write there for as long as this process
// lives.
void keep_for_good(std::vector<Tensor> tensors, const char *engine)
{
    static Mutex &mutex = *new Mutex(LockRank::kOther);
    static std::vector<Tensor> &kept = *new std::vector<Tensor>;
    uint64_t bytes = 0;
    for (const Tensor &each : tensors) bytes += each->storage->bytes;
    log(LogLevel::kWarn,
        "%llu bytes of a call that failed stay allocated to the end of this process: %s cannot take the call back",
        static_cast<unsigned long long>(bytes), engine);
    const std::lock_guard lock(mutex);
    std::ranges::move(tensors, std::back_inserter(kept));
}

}  // namespace

// ---- Running one ------------------------------------------------------------------------------------------------

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
        if (!queue_.empty()) carry_version(each);
    }
    changed_.notify_all();
}

// With the lock held. What a call writes is no write amid those that wait behind it; but those of tensors of a device
// have read theirs already.
void Group::carry_version(const Pending &ended) noexcept
{
    if (!ended.has_written) return;
    const Tensor &written = ended.call.out;
    const auto carry = [&](const Tensor &tensor, uint32_t &version) {
        if (tensor.present() && tensor->storage.get() == written->storage.get() &&
            version == ended.versions[1])
            version = version_of(written);
    };
    for (Batch &batch : queue_)
        for (Pending &each : batch) {
            if (each.call.staged.present()) continue;
            carry(each.call.in, each.versions[0]);
            carry(each.call.out, each.versions[1]);
        }
}

void Group::begin(Pending &pending)
try {
    const Collective &call = pending.call;
    if (call.staged.present()) [[unlikely]]
        return begin_staged(pending);
    pending.in = dense(call.in);
    pending.out = call.in.get() == call.out.get() ? pending.in : dense(call.out);
    if (pending.out.present()) before_write(*pending.out->storage);
} catch (const Error &error) {
    fail_alone(error.status(), error.what(), pending);
} catch (const std::bad_alloc &) {
    fail_alone(YOKE_E_OOM, kNoMemoryText, pending);
}

void Group::end(Pending &pending)
{
    const Collective &call = pending.call;
    check_not_written(call.in, pending.versions[0], call.name());
    check_not_written(call.out, pending.versions[1], call.name());
    if (call.staged.present()) [[unlikely]]
        return end_staged(pending);
    if (!pending.out.present() || call.op == YOKE_COMM_SEND) return;
    pending.has_written = true;
    if (pending.out.get() != call.out.get())
        ops::copy_(*call.out, *pending.out);
    else
        pending.out->storage->note_written(call.name());
}

yoke_collective Group::record_of(const Pending &pending) const
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

// ---- Failure ----------------------------------------------------------------------------------------------------

// Where that is a member.
void Group::blame_server(yoke_comm_fault &fault) const noexcept
{
    const auto server = members_.met ? std::ranges::find(members_.met_as, members_.met->server_rank)
                                     : members_.met_as.end();
    if (server != members_.met_as.end())
        fault.rank = static_cast<int32_t>(server - members_.met_as.begin());
}

// Whom this rank misses may itself wait for another one. All tell whom they miss: who tells nothing is the one, and so
// is rank 0 where it does not even answer for the table.
bool Group::find_culprit(yoke_comm_fault &fault) const noexcept
{
    constexpr double kPatience = 0.1;
    const auto place = [](int32_t rank) { return "misses/" + std::to_string(rank); };
    try {
        members_.store->set(place(rank()), std::to_string(fault.rank), Deadline::after(kPatience));
    } catch (const std::exception &) {
        blame_server(fault);
        return false;
    }
    try {
        for (int32_t hop = 1; hop < size(); ++hop) {
            const std::string told =
                members_.store->get(place(fault.rank), Deadline::after(kPatience));
            const int32_t missed = parsed<int32_t>(told).value_or(-1);
            if (missed < 0 || missed >= size() || missed == rank()) break;
            fault.rank = missed;
        }
    } catch (const std::exception &) {  // it has told nothing
    }
    return true;
}

void Group::keep_memory(Calls calls) const
{
    std::vector<Tensor> tensors;
    for (const Pending &each : calls) {
        if (each.in.present()) tensors.push_back(each.in);
        if (each.out.present() && each.out.get() != each.in.get()) tensors.push_back(each.out);
    }
    keep_for_good(std::move(tensors), engine_->name());
}

void Group::fail_call(const EngineFailure &failure, Calls calls)
{
    if (failure.fault.keeps_memory) keep_memory(calls);
    const yoke_comm_signature &theirs = failure.fault.theirs;
    const auto met = std::ranges::find_if(calls, [&](const Pending &each) {
        return each.signature.sequence == theirs.sequence && each.signature.op == theirs.op;
    });
    const Pending &pending = met == calls.end() ? calls[0] : *met;
    yoke_comm_fault fault = failure.fault;
    const bool is_late = fault.kind == YOKE_COMM_FAULT_LATE && fault.rank >= 0;
    const bool can_agree = !is_late || find_culprit(fault);
    const Cause mine =
        has_left(fault)
            ? cause_of_leaving(pending.doing(), members_.ranks[static_cast<size_t>(fault.rank)])
            : cause_of(fault, failure.status, failure.text, pending.doing(), members_.self(),
                       members_.ranks);
    const bool is_aborted = failure.fault.kind == YOKE_COMM_FAULT_ABORTED;
    {
        const std::lock_guard lock(mutex_);
        if (is_aborted && cause_) cause_->raise();
    }
    fail_with(can_agree ? agreed(mine) : mine);
    const std::lock_guard lock(mutex_);
    cause_->raise();
}

void Group::fail_alone(const Cause &cause)
{
    if (!is_failed()) fail_with(agreed(cause));
    const std::lock_guard lock(mutex_);
    cause_->raise();
}

void Group::fail_alone(yoke_status status, const char *text, const Pending &pending)
{
    fail_alone(cause_of({}, status, text, pending.doing(), members_.self(), members_.ranks));
}

namespace {

std::string left_key(int32_t rank)
{
    return "left/" + std::to_string(rank);
}

}  // namespace

// Before the others see its connections end. Of a group that has failed nobody asks.
void Group::say_left() noexcept
try {
    constexpr double kPatience = 0.1;
    if (size() == 1 || !is_made() || is_failed()) return;
    members_.store->set(left_key(rank()), "", Deadline::after(kPatience));
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "a rank left its group, and could not tell the others: %s", error.what());
}

// With the table its keeper has gone, whose farewell, or end, is about to be heard.
bool Group::has_left(const yoke_comm_fault &fault) const noexcept
{
    constexpr std::chrono::milliseconds kPatience{100};
    if (fault.kind != YOKE_COMM_FAULT_DIED || fault.rank < 0) return false;
    try {
        const Deadline deadline = Deadline::after(std::chrono::duration<double>(kPatience).count());
        if (members_.store->try_get(left_key(fault.rank), deadline)) return true;
        const std::lock_guard lock(mutex_);
        return has_left_.contains(fault.rank) && has_left_.at(fault.rank);
    } catch (const std::exception &) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kPatience, [&] { return has_left_.contains(fault.rank); });
        return has_left_.contains(fault.rank) && has_left_.at(fault.rank);
    }
}

// The first rank that asks for it publishes its cause; the others take that, or, where nobody can be asked any more,
// their own.
Cause Group::agreed(Cause mine) noexcept
{
    constexpr double kPatience = 1;
    try {
        return Cause::decode(
            members_.store->set_once(kCauseKey, mine.encode(), Deadline::after(kPatience)));
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
    const bool is_tried_again = members_.is_again && !is_made();
    if (!cause.is_planned && !is_tried_again) {  // without the lock: it may log
        tell_launcher(cause.text);
        dump_failure(cause);
    }
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = cause;
    failed_s_ = monotonic_seconds();
    if (engine_)
        engine_->abort();
    else
        members_.store->abort(cause.status, cause.text);  // the others are still waited for
    changed_.notify_all();
}

void Group::hear(const PeerEvent &event) noexcept
{
    const auto met = std::ranges::find(members_.met_as, event.rank);
    if (met == members_.met_as.end()) return;
    const Arrival &peer = members_.ranks[static_cast<size_t>(met - members_.met_as.begin())];
    if (event.kind == PeerEvent::kLeft || event.kind == PeerEvent::kEnded) {
        const std::lock_guard lock(mutex_);
        has_left_[peer.rank] = event.kind == PeerEvent::kLeft;
        changed_.notify_all();
    }
    if (event.kind == PeerEvent::kSilent)
        lose(cause_of_loss(
            peer,
            format("has not been heard for %.3g s (YOKE_COMM_SILENCE): it is stopped, or cut off",
                   event.silent_s)));
    // Later it is missed by who waits for it, whom the engine tells.
    const bool has_gone = event.kind == PeerEvent::kEnded || event.kind == PeerEvent::kLeft;
    if (event.kind == PeerEvent::kEnded && is_made()) miss_server(peer);
    if (!has_gone || is_made()) return;
    lose(cause_of_loss(peer, event.kind == PeerEvent::kLeft
                                 ? "left while the group was made"
                                 : "died while the group was made: its connection ended"));
}

// With the one that kept the table who waits for it can tell nobody, and ranks that wait for those wait in vain. What
// is about to be done without it is done.
void Group::miss_server(const Arrival &peer) noexcept
{
    constexpr double kPatience = 0.3;
    const int32_t met_as = members_.met_as[static_cast<size_t>(peer.rank)];
    if (!members_.met || members_.met->server || met_as != members_.met->server_rank) return;
    act_later(link_, kPatience,
              [cause = cause_of_loss(peer, "died: its connection ended")](Group &group) {
                  group.lose(cause);
              });
}

void Group::lose(const Cause &cause) noexcept
{
    // Rank 0's table is here, and takes it at once; the others lose rank 0 alone, each by itself.
    fail_with(members_.met && members_.met->server ? agreed(cause) : cause);
}

void Group::abort(const std::string &reason) noexcept
{
    if (!is_here()) return;
    Cause cause{YOKE_E_CANCELLED, "the group was ended by abort() on " +
                                      yoke::describe(members_.self()) +
                                      (reason.empty() ? "" : ": " + reason)};
    fail_with(agreed(std::move(cause)));
}

}  // namespace yoke
