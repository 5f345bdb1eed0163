#include "core/comm/call_queue.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/comm/call_runner.h"

#include <algorithm>
#include <utility>

namespace yoke {

CallQueue::CallQueue(Owner &owner, CallRunner &runner, Flights &flights, const Members &members,
                     double timeout_s)
    : owner_(owner), runner_(runner), flights_(flights), members_(members), timeout_s_(timeout_s)
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
    if (!server_.thread.joinable()) return;
    if (server_.thread.get_id() != std::this_thread::get_id()) {
        server_.thread.join();
        return;
    }
    server_.thread.detach();
    *server_.is_gone = true;
    serve();
}

// ---- The order --------------------------------------------------------------------------------------------------

yoke_comm_signature CallQueue::sign(const Collective &call)
{
    yoke_comm_signature signature = signature_of(call);
    signature.group = members_.number;
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

PendingCall CallQueue::number(IssuedCall &issued)
{
    PendingCall made;
    made.order = issued.call.staged.present() ? nullptr : this;
    made.in_use = InUse(issued.call.in, issued.call.out, made.order);
    made.signature = sign(issued.call);
    made.signature.on_device |= issued.late.present() ? 1 : 0;
    made.deadline = Deadline::after(timeout_s_);
    if (issued.until) made.deadline = made.deadline.within(issued.until->remaining_s());
    if (issued.late.present()) [[unlikely]] {
        issued.late->note_number(made.signature, made.deadline, issued.line);
        flights_.note_issued();
    }
    CallRecord record;
    record.signature = made.signature;
    record.queued_s = made.deadline.made_s();
    record.op = issued.call.called_as();
    record.peer = issued.call.peer;
    record.line = made.line = issued.line;
    made.record = records_.add(record);
    made.work = issued.work;
    made.late = issued.late;
    made.call = std::move(issued.call);
    return made;
}

std::vector<Ref<Work>> CallQueue::issue(std::span<IssuedCall> issued, bool may_run_here)
{
    std::unique_lock lock(mutex_);
    if (issued.size() == 1) {
        PendingCall pending = number(issued[0]);
        return start({&pending, 1}, may_run_here, std::move(lock));
    }
    Batch batch;
    for (IssuedCall &each : issued) batch.push_back(number(each));
    return start(batch, may_run_here, std::move(lock));
}

// Runs the calls here if `may_run_here` and the group is idle. Else queues the calls; returns works for blocking calls.
std::vector<Ref<Work>> CallQueue::start(PendingCalls calls, bool may_run_here,
                                        std::unique_lock<std::mutex> lock)
{
    // An engine's call cannot ask the host program for interrupts, so an interruptible call does not run here.
    const bool is_free =
        queue_.empty() && !is_running_ && !Interruptible::is_open() && !flights_.are_issued();
    std::vector<Ref<Work>> awaited;
    if (may_run_here && is_free) {
        note_running(calls, calls[0].deadline.made_s());
    } else {
        for (PendingCall &each : calls)
            if (!each.work.present() && !each.late.present())
                awaited.push_back(each.work = Work::begin(each.call.bytes()));
        const bool is_seen = server_.looks > 0 && awaited.empty() && calls[0].late.present();
        std::string why;
        if (enqueue(calls, &why)) {
            lock.unlock();  // else the thread would wake and wait for the lock
            if (!is_seen) changed_.notify_all();
            return awaited;
        }
        changed_.wait(lock, [this] { return !is_running_; });  // no thread, so no queued calls
        note_running(calls, monotonic_seconds());
        lock.unlock();
        log(LogLevel::kWarn,
            "%s: the system cannot start a thread (%s); the call returns when it is done",
            calls[0].call.name(), why.c_str());
    }
    if (lock) lock.unlock();
    const std::exception_ptr failure = perform(calls);
    if (failure && may_run_here) {
        runner_.failures()->note_told(failure);
        std::rethrow_exception(failure);
    }
    return awaited;
}

bool CallQueue::start_thread_of_queue(std::string *why)
{
    if (!server_.thread.joinable()) *why = start_thread(server_.thread, [this] { serve(); });
    return why->empty();
}

void CallQueue::ensure_thread(const char *call)
{
    std::string why;
    const std::lock_guard lock(mutex_);
    if (!start_thread_of_queue(&why))
        fail_in(
            call, YOKE_E_OOM,
            "the system cannot start a thread for the group's calls on devices: %s; check ulimit -u",
            why.c_str());
}

void CallQueue::wake() noexcept
{
    const std::lock_guard lock(mutex_);
    if (server_.looks == 0) changed_.notify_all();
}

bool CallQueue::enqueue(PendingCalls calls, std::string *why)
{
    if (start_thread_of_queue(why)) queue_.push(calls);
    return why->empty();
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
    constexpr int kLooks = 40;
    const double now = monotonic_seconds();
    const std::lock_guard lock(mutex_);
    is_running_ = false;
    for (const PendingCall &each : calls) {
        if (each.late.present()) server_.looks = kLooks;
        if (CallRecord *record = records_.find(each.record)) {
            const bool has_failed = !is_done || each.late_failure;
            const bool goes_on = each.late.present() && !has_failed;  // on the device
            record->ended_s = goes_on ? 0 : now;
            record->state = goes_on      ? CallRecord::kIssued
                            : has_failed ? CallRecord::kFailed
                                         : CallRecord::kDone;
        }
    }
    changed_.notify_all();
}

std::exception_ptr CallQueue::perform(PendingCalls calls) noexcept
{
    std::exception_ptr failure;
    try {
        if (are_held_up(calls)) runner_.raise_held_up(calls.front());
        runner_.run(calls);
    } catch (...) {
        failure = std::current_exception();
    }
    // Releasing memory of the host program may end the group, so the release comes last.
    const std::shared_ptr<FailuresOfDevices> failures = failure ? runner_.failures() : nullptr;
    for (PendingCall &each : calls)
        if (each.late.present()) [[unlikely]]
            each.late_failure = end_late(each, failure);
    note_ended(calls, !failure);
    for (PendingCall &each : calls) end(each, failure, failures);
    return failure;
}

void CallQueue::end(PendingCall &call, std::exception_ptr failure,
                    const std::shared_ptr<FailuresOfDevices> &failures) noexcept
{
    std::unique_ptr<Work::Tail> tail;
    if (call.call.staged.present()) [[unlikely]]
        tail = call.call.staged->end(failure, !call.work.present());
    else if (failure && !call.late.present())
        tail = make_telling_tail(failures, failure);
    call.in_use = {};
    call.call.in = call.in = {}, call.call.out = call.out = {}, call.call.staged = {};
    if (call.late_failure) failure = call.late_failure;
    call.late = {};
    if (call.work.present()) call.work->finish(failure, std::move(tail));
}

// Gives a compared call to the flights once the stream has the call. Returns `failure`, or why the stream has none.
std::exception_ptr CallQueue::end_late(PendingCall &call, std::exception_ptr failure) noexcept
{
    call.late->settle();
    if (!runner_.is_failed()) try {
            runner_.await_launch(call);
            flights_.add({call.late, call.record, false});
            return failure;
        } catch (...) {
            if (!failure) failure = std::current_exception();
        }
    const auto land = [late = call.late] {
        (void)late->await_launch(Deadline::never());
        late->land(false);
    };
    flights_.note_dropped();
    if (!start_detached_thread(land).empty()) land();
    return failure;
}

// Returns whether calls issued together must wait until all earlier calls on devices have landed: a barrier waits.
bool CallQueue::are_held_up(PendingCalls calls) const noexcept
{
    const auto is_barrier = [](const PendingCall &each) {
        return each.call.op == YOKE_COMM_BARRIER && !each.late.present();
    };
    return !flights_.are_none() && std::ranges::any_of(calls, is_barrier);
}

// Waits until the thread has work. A held-up call ends a little behind its deadline, even if the watch thread hangs.
void CallQueue::await_work(std::unique_lock<std::mutex> &lock)
{
    constexpr std::chrono::microseconds kLook{20'000}, kSoon{50};
    int more_looks = 10;
    while (!flights_.have_landed() && !(queue_.empty() && end_ != kServes)) {
        const bool looks = queue_.empty() && server_.looks > 0;
        server_.looks = looks ? server_.looks - 1 : 0;  // at 0 others wake the thread
        if (looks) {
            changed_.wait_for(lock, kSoon);
        } else if (queue_.empty() || is_running_) {
            changed_.wait(lock);
        } else {
            Batch &next = queue_.front();
            if (!are_held_up(next) || runner_.is_failed() || more_looks < 0) return;
            changed_.wait_for(lock, kLook);
            more_looks -= next.front().deadline.has_passed() ? 1 : 0;
        }
    }
}

void CallQueue::take_landed() noexcept
{
    const std::shared_ptr<Flights> flights = flights_.shared_from_this();  // the group may end here
    std::list<Flight> landed = flights->take_landed();
    {
        const double now = monotonic_seconds();
        const std::lock_guard lock(mutex_);
        for (const Flight &each : landed)
            if (CallRecord *record = records_.find(each.record)) {
                record->ended_s = now;
                record->state = each.has_ended ? CallRecord::kDone : CallRecord::kFailed;
            }
        changed_.notify_all();
    }
    for (Flight &each : landed) {
        each.call->land(each.has_ended);
        each.call = {};  // releasing a tensor may run code of the host program
    }
    flights->note_let_go(landed.size());
}

// Runs the calls in their order, until all are done and the group ends. A call may end the group within `perform`.
void CallQueue::serve() noexcept
{
    bool is_gone = false;
    Unsettled::settle_here();
    std::unique_lock lock(mutex_);
    server_.is_gone = &is_gone;
    for (;;) {
        await_work(lock);
        if (flights_.have_landed()) {
            lock.unlock();
            take_landed();
            if (is_gone) return;
            lock.lock();
            continue;
        }
        if (queue_.empty()) break;
        Batch next = queue_.pop();
        note_running(next, monotonic_seconds());
        lock.unlock();
        perform(next);
        next.clear();
        if (is_gone) return;
        lock.lock();
        queue_.give_back(std::move(next));
    }
    if (std::exchange(end_, kLeaves) != kLingers) return;
    lock.unlock();
    owner_.end_lingering();
}

bool CallQueue::has_pending() const noexcept
{
    const std::lock_guard lock(mutex_);
    return is_running_ || !queue_.empty() || flights_.are_issued();
}

bool CallQueue::linger() noexcept
{
    const std::lock_guard lock(mutex_);
    const bool is_served =
        server_.thread.joinable() && server_.thread.get_id() != std::this_thread::get_id();
    if (!is_served || (queue_.empty() && !is_running_ && !flights_.are_issued())) return false;
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
