#include "core/comm/group.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/comm/coalesce.h"
#include "core/comm/ending.h"

#include <iterator>
#include <new>
#include <utility>

namespace yoke {

// ---- Its order among the others ---------------------------------------------------------------------------------

Group::Group(Members members, const GroupOptions &options)
    : members_(std::move(members)),
      options_(options),
      process_(getpid()),
      staging_(format("rank %d of %d", rank(), size())),
      sent_(members_.ranks.size()),
      received_(members_.ranks.size())
{
}

bool Group::is_failed() const noexcept
{
    const std::lock_guard lock(mutex_);
    return cause_.has_value();
}

bool Group::is_made() const noexcept
{
    const std::lock_guard lock(mutex_);
    return engine_ != nullptr;
}

bool Group::has_pending() const noexcept
{
    const std::lock_guard lock(mutex_);
    return is_running_ || !queue_.empty();
}

// What a script that ended by an error has begun nobody waits for; the others are told why before they miss it.
void Group::fail_as_ended() noexcept
try {
    if (const std::string why = ending(); !why.empty())
        fail_with(agreed(
            cause_of_loss(members_.self(), "has left the group: " + why + describe_running())));
} catch (const std::bad_alloc &) {  // what was begun is waited for
}

Group::~Group()
{
    const struct Farewell {
        ~Farewell()
        {
            group.say_left();
            if (group.engine_.use_count() > 1) group.engine_->leave();
        }
        Group &group;
    } when_all_is_done{*this};
    if (link_) {
        const std::lock_guard lock(link_->mutex);
        link_->group = nullptr;
    }
    if (heard_by_) members_.store->forget(kCauseKey, heard_by_);
    if (has_pending()) fail_as_ended();
    if (dumped_.valid()) dumped_.wait();
    {
        const std::lock_guard lock(mutex_);
        is_leaving_ = true;
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

void Group::check_process() const
{
    if (!is_here())
        fail(
            YOKE_E_FORKED,
            "this group is that of process %d, of which this is a forked child; make one of its own with init",
            static_cast<int>(process_));
}

std::unique_lock<std::mutex> Group::lock_here() const
{
    check_process();
    return std::unique_lock(mutex_);
}

void Group::check_usable(std::unique_lock<std::mutex> &lock, const char *call)
{
    if (!cause_) return;
    name_cause(call);
    staging_.failures()->note_told(cause_->text);
    raise_cause(lock, call);
}

// With the lock held: the first call of this rank that raises it.
void Group::name_cause(const char *call)
{
    if (std::exchange(cause_->is_of_no_call, false))
        cause_->text = std::string(call) + ": " + cause_->text;
}

// Whoever is told may end the process: the dump is written by then.
void Group::raise_cause(std::unique_lock<std::mutex> &lock, const char *call)
{
    name_cause(call);
    const Cause cause = *cause_;
    const std::shared_future<void> dumped = dumped_;
    lock.unlock();
    if (dumped.valid()) dumped.wait();
    note_told();
    cause.raise();
}

void Group::note_told() noexcept
{
    uint64_t before = UINT64_MAX;
    told_at_.compare_exchange_strong(before, next_sequence_number());
}

// With the lock held.
yoke_comm_signature Group::sign(const Collective &call)
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
        signature.sequence = ++sent_[peer];
    } else if (call.op == YOKE_COMM_RECV) {
        signature.sequence = ++received_[peer];
        signature.op = YOKE_COMM_SEND;
        signature.root = rank();
    } else {
        signature.sequence = ++sequence_;
    }
    return signature;
}

// With the lock held.
Group::Pending Group::number(Issued issued)
{
    Pending made;
    made.in_use = InUse(issued.call.in, issued.call.out, order_of(issued.call));
    made.signature = sign(issued.call);
    made.deadline = Deadline::after(options_.timeout_s);
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

Ref<Work> Group::run(Collective call, bool is_async)
{
    const bool is_message = call.is_message();
    const auto check = [&] {
        check_not_capturing(call.name());
        check_collective(call, {rank(), size()});
    };
    or_refuse(check, is_message ? Refused::kMessage : Refused::kCollective);
    if (is_message)
        forget_refused(Refused::kMessage);
    else
        backwards_.note_asked();
    if (Device *device = call.device(); device && !device->host) [[unlikely]]
        call.staged = Staged::make(staging_, *device, uses_of(call, {rank(), size()}));
    Ref<Work> work = is_async ? Work::begin(call.bytes()) : nullptr;
    hold_memory(call);
    Issued issued{std::move(call), work, script_line()};
    if (Coalescing::is_open())
        Coalescing::add(Ref<Group>::share(this), std::move(issued));
    else
        issue(std::move(issued), !is_async);
    return work;
}

void Group::issue(Issued issued, bool may_run_here)
{
    if (issued.call.staged.present()) [[unlikely]]
        stage(issued.call);
    std::unique_lock lock = lock_here();
    check_usable(lock, issued.call.name());
    Pending pending = number(std::move(issued));
    for (const Ref<Work> &each : start({&pending, 1}, may_run_here, std::move(lock)))
        each->wait(-1);
}

namespace {

bool writes_what(const Collective &call, const Tensor &other)
{
    return call.op != YOKE_COMM_SEND && call.out.present() && other.present() &&
           shares_memory(*call.out, *other);
}

// Of calls that are issued together none has been done when another one reads or writes.
void check_apart(const std::vector<Group::Issued> &issued)
{
    for (size_t i = 0; i < issued.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            const Collective &a = issued[j].call, &b = issued[i].call;
            if (writes_what(a, b.in) || writes_what(a, b.out) || writes_what(b, a.in))
                fail(
                    YOKE_E_STATE,
                    "coalesce: %s and %s of one scope use the same memory, and one writes it; put them in scopes of their own, one after the other",
                    a.name(), b.name());
        }
}

}  // namespace

std::vector<Ref<Work>> Group::run_together(std::vector<Issued> calls, bool may_run_here)
{
    check_apart(calls);
    for (Issued &each : calls)
        if (each.call.staged.present()) stage(each.call);
    std::unique_lock lock = lock_here();
    check_usable(lock, calls[0].call.name());
    Batch batch;
    for (Issued &each : calls) batch.push_back(number(std::move(each)));
    return start(batch, may_run_here, std::move(lock));
}

// In the caller, where it may and nothing else is under way; else in the group's thread.
std::vector<Ref<Work>> Group::start(Calls calls, bool may_run_here,
                                    std::unique_lock<std::mutex> lock)
{
    // Amid a call of the engine's no host is asked.
    const bool is_free = queue_.empty() && !is_running_ && !Interruptible::is_open();
    std::vector<Ref<Work>> awaited;
    if (may_run_here && is_free) {
        note_running(calls, calls[0].deadline.made_s());
    } else {
        for (Pending &each : calls)
            if (!each.work.present()) awaited.push_back(each.work = Work::begin(each.call.bytes()));
        if (enqueue(calls)) return awaited;
        changed_.wait(lock, [this] { return !is_running_; });  // nothing is queued without a thread
        note_running(calls, monotonic_seconds());
    }
    lock.unlock();
    const std::exception_ptr failure = perform(calls);
    if (failure && may_run_here) std::rethrow_exception(failure);
    return awaited;
}

// With the lock held.
void Group::note_running(Calls calls, double now)
{
    is_running_ = true;
    for (const Pending &each : calls)
        if (CallRecord *record = records_.find(each.record)) {
            record->began_s = now;
            record->state = CallRecord::kRunning;
        }
}

// With the lock held.
bool Group::enqueue(Calls calls)
{
    if (!thread_.joinable()) {
        const std::string why = start_thread(thread_, [this] { serve(); });
        if (!why.empty()) {
            log(LogLevel::kWarn,
                "%s: the system gives no thread (%s); the call returns when it is done",
                calls[0].call.name(), why.c_str());
            return false;
        }
    }
    queue_.emplace_back(std::make_move_iterator(calls.begin()),
                        std::make_move_iterator(calls.end()));
    changed_.notify_all();
    return true;
}

// The group's thread: calls in their order, until all are done and the group is left. What a call lets go may be
// memory of the host's, at whose end the host leaves the group.
void Group::serve() noexcept
{
    bool is_gone = false;
    std::unique_lock lock(mutex_);
    is_gone_ = &is_gone;
    for (;;) {
        changed_.wait(lock, [this] { return (!queue_.empty() && !is_running_) || is_leaving_; });
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
    if (!std::exchange(is_lingering_, false)) return;
    lock.unlock();
    end_lingering();
}

}  // namespace yoke
