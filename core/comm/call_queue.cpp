#include "core/comm/call_queue.h"

#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/comm/call_runner.h"

#include <iterator>
#include <utility>

namespace yoke {

CallQueue::CallQueue(Owner &owner, CallRunner &runner, const Members &members, double timeout_s)
    : owner_(owner), runner_(runner), members_(members), timeout_s_(timeout_s)
{
    counts_.sent.resize(members.ranks.size());
    counts_.received.resize(members.ranks.size());
}

void CallQueue::stop()
{
    {
        const std::lock_guard lock(mutex_);
        end_ = kLeaves;
        changed_.notify_all();
    }
    if (!thread_.joinable()) return;
    if (thread_.get_id() != std::this_thread::get_id()) {
        thread_.join();
        return;
    }
    thread_.detach();
    *is_gone_ = true;
    serve();
}

// ---- The order --------------------------------------------------------------------------------------------------

yoke_comm_signature CallQueue::sign(const Collective &call)
{
    yoke_comm_signature signature{};
    signature.group = members_.number;
    signature.count = call.count;
    signature.op = call.called_as < 0 ? call.op : call.called_as;
    signature.dtype = call.dtype;
    signature.reduction = call.reduction;
    signature.root = call.peer;
    const auto peer = static_cast<size_t>(call.peer);
    if (call.op == YOKE_COMM_SEND) {
        signature.sequence = ++counts_.sent[peer];
    } else if (call.op == YOKE_COMM_RECV) {
        signature.sequence = ++counts_.received[peer];
        signature.op = YOKE_COMM_SEND;
        signature.root = members_.rank;
    } else {
        signature.sequence = ++counts_.calls;
    }
    return signature;
}

PendingCall CallQueue::number(IssuedCall issued)
{
    PendingCall made;
    made.order = issued.call.staged.present() ? nullptr : this;
    made.in_use = InUse(issued.call.in, issued.call.out, made.order);
    made.signature = sign(issued.call);
    made.deadline = Deadline::after(timeout_s_);
    CallRecord record;
    record.signature = made.signature;
    record.queued_s = made.deadline.made_s();
    record.op = issued.call.called_as < 0 ? issued.call.op : issued.call.called_as;
    record.peer = issued.call.peer;
    record.line = made.line = issued.line;
    made.record = records_.add(record);
    made.work = std::move(issued.work);
    made.call = std::move(issued.call);
    return made;
}

std::vector<Ref<Work>> CallQueue::issue(IssuedCall issued, bool may_run_here)
{
    std::unique_lock lock(mutex_);
    PendingCall pending = number(std::move(issued));
    return start({&pending, 1}, may_run_here, std::move(lock));
}

std::vector<Ref<Work>> CallQueue::issue(std::vector<IssuedCall> issued, bool may_run_here)
{
    std::unique_lock lock(mutex_);
    Batch batch;
    for (IssuedCall &each : issued) batch.push_back(number(std::move(each)));
    return start(batch, may_run_here, std::move(lock));
}

// Runs the calls in the caller if it may and no other call is queued or runs; else the queue's thread runs them.
std::vector<Ref<Work>> CallQueue::start(PendingCalls calls, bool may_run_here,
                                        std::unique_lock<std::mutex> lock)
{
    // Amid a call of the engine's no host is asked.
    const bool is_free = queue_.empty() && !is_running_ && !Interruptible::is_open();
    std::vector<Ref<Work>> awaited;
    if (may_run_here && is_free) {
        note_running(calls, calls[0].deadline.made_s());
    } else {
        for (PendingCall &each : calls)
            if (!each.work.present()) awaited.push_back(each.work = Work::begin(each.call.bytes()));
        std::string why;
        if (enqueue(calls, &why)) return awaited;
        changed_.wait(lock, [this] { return !is_running_; });  // nothing is queued without a thread
        note_running(calls, monotonic_seconds());
        lock.unlock();
        log(LogLevel::kWarn,
            "%s: the system gives no thread (%s); the call returns when it is done",
            calls[0].call.name(), why.c_str());
    }
    if (lock) lock.unlock();
    const std::exception_ptr failure = perform(calls);
    if (failure && may_run_here) std::rethrow_exception(failure);
    return awaited;
}

bool CallQueue::enqueue(PendingCalls calls, std::string *why)
{
    if (!thread_.joinable()) {
        *why = start_thread(thread_, [this] { serve(); });
        if (!why->empty()) return false;
    }
    queue_.emplace_back(std::make_move_iterator(calls.begin()),
                        std::make_move_iterator(calls.end()));
    changed_.notify_all();
    return true;
}

// ---- Calls as they run ------------------------------------------------------------------------------------------

void CallQueue::note_running(PendingCalls calls, double now)
{
    is_running_ = true;
    for (const PendingCall &each : calls)
        if (CallRecord *record = records_.find(each.record)) {
            record->began_s = now;
            record->state = CallRecord::kRunning;
        }
}

void CallQueue::note_ended(PendingCalls calls, bool is_done) noexcept
{
    const double now = monotonic_seconds();
    const std::lock_guard lock(mutex_);
    is_running_ = false;
    for (const PendingCall &each : calls) {
        if (CallRecord *record = records_.find(each.record)) {
            record->ended_s = now;
            record->state = is_done ? CallRecord::kDone : CallRecord::kFailed;
        }
    }
    changed_.notify_all();
}

std::exception_ptr CallQueue::perform(PendingCalls calls) noexcept
{
    std::exception_ptr failure;
    try {
        runner_.run(calls);
    } catch (...) {
        failure = std::current_exception();
    }
    note_ended(calls, !failure);
    for (PendingCall &each : calls) {
        std::unique_ptr<Work::Tail> tail;
        if (each.call.staged.present()) [[unlikely]]
            tail = each.call.staged->end(failure, !each.work.present());
        each.in_use = {};
        each.call.in = each.in = {}, each.call.out = each.out = {}, each.call.staged = {};
        if (each.work.present()) each.work->finish(failure, std::move(tail));
    }
    return failure;
}

// Runs the queue's thread: calls in their order, until all are done and the group ends. A call may let go of the host's
// memory, and the host may then let go of the group: so the queue may end within `perform`.
void CallQueue::serve() noexcept
{
    bool is_gone = false;
    std::unique_lock lock(mutex_);
    is_gone_ = &is_gone;
    for (;;) {
        changed_.wait(lock,
                      [this] { return (!queue_.empty() && !is_running_) || end_ != kServes; });
        if (queue_.empty()) break;
        Batch next = std::move(queue_.front());
        queue_.pop_front();
        note_running(next, monotonic_seconds());
        lock.unlock();
        perform(next);
        next.clear();
        if (is_gone) return;
        lock.lock();
    }
    if (std::exchange(end_, kLeaves) != kLingers) return;
    lock.unlock();
    owner_.end_lingering();
}

bool CallQueue::has_pending() const noexcept
{
    const std::lock_guard lock(mutex_);
    return is_running_ || !queue_.empty();
}

bool CallQueue::linger() noexcept
{
    const std::lock_guard lock(mutex_);
    const bool is_served = thread_.joinable() && thread_.get_id() != std::this_thread::get_id();
    if (!is_served || (queue_.empty() && !is_running_)) return false;
    end_ = kLingers;
    return true;
}

bool CallQueue::is_lingering() const noexcept
{
    const std::lock_guard lock(mutex_);
    return end_ == kLingers;
}

CallQueue::Turn::Turn(CallQueue &queue) : queue_(queue)
{
    constexpr double kNever = 1e9;
    std::unique_lock lock(queue.mutex_);
    wait_until(queue.changed_, lock, Deadline::after(kNever),
               [&queue] { return !queue.is_running_; });
    queue.is_running_ = true;
}

CallQueue::Turn::~Turn()
{
    const std::lock_guard lock(queue_.mutex_);
    queue_.is_running_ = false;
    queue_.changed_.notify_all();
}

// ---- For dumps --------------------------------------------------------------------------------------------------

uint64_t CallQueue::next_number() const
{
    const std::lock_guard lock(mutex_);
    return counts_.calls + 1;
}

std::vector<CallRecord> CallQueue::records() const
{
    const std::lock_guard lock(mutex_);
    return records_.all();
}

std::string CallQueue::describe_running() const
{
    CallRecord running;
    for (const CallRecord &each : records())
        if (each.state == CallRecord::kRunning) running = each;
    if (running.state != CallRecord::kRunning) return "";
    const std::string line = describe(running.line);
    return describe(running.signature, running.from()) + (line.empty() ? "" : " at " + line);
}

CallQueue::Counts CallQueue::counts(std::vector<CallRecord> *records, double *now_s) const
{
    const std::lock_guard lock(mutex_);
    *records = records_.all();
    *now_s = monotonic_seconds();
    return counts_;
}

}  // namespace yoke
