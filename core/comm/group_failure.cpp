// What becomes of a group when a call fails, or a rank is lost.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/comm/dump_failure.h"
#include "core/comm/group.h"
#include "core/launch/error_file.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

namespace yoke {

// The rank that keeps the table by which ranks agree, or -1 where none of this group does: of a part, one of the job's.
int32_t Group::server() const noexcept
{
    const auto server = members_.met ? std::ranges::find(members_.met_as, members_.met->server_rank)
                                     : members_.met_as.end();
    return server == members_.met_as.end() ? -1
                                           : static_cast<int32_t>(server - members_.met_as.begin());
}

namespace {

// Of calls that failed, and that their engine cannot take back: a network may write there for as long as this process
// lives.
void keep_for_good(std::vector<Tensor> tensors, const char *engine)
{
    static Mutex &mutex = *new Mutex(LockRank::kOther);
    static std::vector<Tensor> &kept = *new std::vector<Tensor>;
    uint64_t bytes = 0;
    for (const Tensor &each : tensors) bytes += each->storage->bytes;
    if (bytes == 0) return;  // such as of a barrier
    log(LogLevel::kWarn,
        "%llu bytes of a call that failed stay allocated to the end of this process: %s cannot take the call back",
        static_cast<unsigned long long>(bytes), engine);
    const std::lock_guard lock(mutex);
    std::ranges::move(tensors, std::back_inserter(kept));
}

}  // namespace

void Group::keep_memory(Calls calls) const
{
    std::vector<Tensor> tensors;
    for (const Pending &each : calls) {
        if (each.in.present()) tensors.push_back(each.in);
        if (each.out.present() && each.out.get() != each.in.get()) tensors.push_back(each.out);
    }
    keep_for_good(std::move(tensors), engine_->name());
}

// Of calls that were issued together the one at which that rank has failed: what it sends is met by a recv from it.
const Group::Pending &Group::met_by(const yoke_comm_fault &fault, Calls calls) noexcept
{
    const auto is_met = [&](const Pending &each) {
        return each.signature.sequence == fault.theirs.sequence &&
               each.signature.op == fault.theirs.op && each.call.op != YOKE_COMM_SEND &&
               (each.call.op != YOKE_COMM_RECV || each.call.peer == fault.rank);
    };
    const auto concerns = [&](const Pending &each) {
        return each.signature.op != YOKE_COMM_SEND || each.call.peer == fault.rank;
    };
    auto met = std::ranges::find_if(calls, is_met);
    if (met == calls.end()) met = std::ranges::find_if(calls, concerns);
    return met == calls.end() ? calls[0] : *met;
}

// Where that rank's call is one of these, it came while this one was at a call before it: a message, where that is
// none.
CurrentCall Group::current_call_of(const yoke_comm_fault &fault, Calls calls)
{
    const Pending &met = met_by(fault, calls);
    const bool is_alike = memcmp(&met.signature, &fault.theirs, sizeof met.signature) == 0;
    if (fault.kind != YOKE_COMM_FAULT_MISMATCH || !is_alike) return met.current();
    const bool is_send = met.signature.op == YOKE_COMM_SEND;
    for (const Pending *each = &met; each != calls.data(); --each) {
        const Pending &before = each[-1];
        if ((before.signature.op == YOKE_COMM_SEND) == is_send) continue;
        if (!is_send && before.call.peer != fault.rank) continue;
        CurrentCall current = before.current();
        current.before = told_as(met.current());
        return current;
    }
    return met.current();
}

Cause Group::cause_of_call(const EngineFailure &failure, const CurrentCall &current,
                           bool *can_agree) const
{
    const yoke_comm_fault &fault = failure.fault;
    if (fault.kind == YOKE_COMM_FAULT_LATE)
        return cause_of_lateness(fault.rank, current, can_agree);
    const auto info = [&](int32_t rank) { return members_.ranks[static_cast<size_t>(rank)]; };
    if (const std::optional<std::string> why = why_it_left(fault))
        return cause_of_leaving(current, info(fault.rank), *why);
    const std::optional<bool> server_left = has_gone(server());
    if (fault.kind == YOKE_COMM_FAULT_DIED && server_left && !has_gone(fault.rank))
        return cause_of_parting(current,
                                server() < 0 ? members_.met->ranks.front() : info(server()),
                                *server_left, info(fault.rank));
    return cause_of(fault, failure.status, failure.text, current, members_.self(), members_.ranks);
}

void Group::fail_call(const EngineFailure &failure, Calls calls)
{
    if (failure.fault.keeps_memory) keep_memory(calls);
    const CurrentCall current = current_call_of(failure.fault, calls);
    const char *call = calls.front().call.name();
    bool can_agree = true;
    const Cause mine = cause_of_call(failure, current, &can_agree);
    if (failure.fault.kind == YOKE_COMM_FAULT_DIED && !has_gone(server()) && is_half_made())
        await_cause(call);
    const bool is_aborted = failure.fault.kind == YOKE_COMM_FAULT_ABORTED;
    if (std::unique_lock lock(mutex_); is_aborted && cause_) raise_cause(lock, call);
    fail_with(can_agree ? agreed(mine) : mine);
    std::unique_lock lock(mutex_);
    raise_cause(lock, call);
}

void Group::fail_alone(const char *call, const Cause &cause)
{
    if (!is_failed()) fail_with(agreed(cause));
    std::unique_lock lock(mutex_);
    raise_cause(lock, call);
}

void Group::fail_alone(yoke_status status, const char *text, const Pending &pending)
{
    fail_alone(pending.call.name(),
               cause_of({}, status, text, pending.current(), members_.self(), members_.ranks));
}

// The first rank that asks for it publishes its cause; the others take that, or, where nobody can be asked any more,
// their own.
Cause Group::agreed(Cause mine, double patience_s) noexcept
{
    try {
        return Cause::decode(
            members_.store->set_once(kCauseKey, mine.encode(), Deadline::after(patience_s)));
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
    const bool is_news = !cause.is_planned && !is_tried_again;
    if (is_news) tell_launcher(cause.text);  // without the lock: it may log
    const FailureDump dump = is_news ? dump_of(cause) : FailureDump();
    {
        const std::lock_guard lock(mutex_);
        if (cause_) return;
        cause_ = cause;
        failed_s_ = monotonic_seconds();
        dumped_ = dump.written();
        for (const auto *those : {&barriers_under_way_, &parts_under_way_})
            for (const std::weak_ptr<Store> &each : *those)
                if (const auto keys = each.lock()) keys->abort(cause.status, cause.text);
        if (engine_) {
            engine_->abort();
            if (has_left_.contains(server())) engine_->hang_up();  // nobody can be told why
        } else {
            members_.store->abort(cause.status, cause.text);  // the others are still waited for
        }
        changed_.notify_all();
    }
    dump.write();
}

void Group::check_running(const char *call)
{
    std::unique_lock lock = lock_here();
    check_usable(lock, call);
}

// "; rank 0 (host a, process 7) is in barrier at train.py:17", or "".
std::string Group::describe_running() const
{
    CallRecord running;
    {
        const std::lock_guard lock(mutex_);
        for (const CallRecord &each : records_.all())
            if (each.state == CallRecord::kRunning) running = each;
    }
    if (running.state != CallRecord::kRunning) return "";
    const std::string line = yoke::describe(running.line);
    return "; " + yoke::describe(members_.self()) + " is in " +
           yoke::describe(running.signature, running.from()) + (line.empty() ? "" : " at " + line);
}

void Group::hear(const PeerEvent &event) noexcept
{
    const auto met = std::ranges::find(members_.met_as, event.rank);
    if (met == members_.met_as.end()) return note_outsider(event);
    const RankInfo &peer = members_.ranks[static_cast<size_t>(met - members_.met_as.begin())];
    if (event.kind == PeerEvent::kLeft || event.kind == PeerEvent::kEnded) {
        const std::lock_guard lock(mutex_);
        has_left_[peer.rank] = event.kind == PeerEvent::kLeft;
        if (event.kind == PeerEvent::kEnded)
            for (const std::weak_ptr<Store> &each : barriers_under_way_)
                if (const auto keys = each.lock()) keys->abort(YOKE_E_COMM, "a rank has died");
        changed_.notify_all();
    }
    if (event.kind == PeerEvent::kSilent)
        lose(
            peer,
            cause_of_loss(
                peer,
                format(
                    "has not been heard for %.3g s (YOKE_COMM_SILENCE): it is stopped, or cut off%s",
                    event.silent_s, describe_running().c_str())));
    // Later it is missed by who waits for it, whom the engine tells.
    const bool has_gone = event.kind == PeerEvent::kEnded || event.kind == PeerEvent::kLeft;
    if (event.kind == PeerEvent::kEnded && is_made()) {
        dump_loss(peer);
        miss_server(peer);
    }
    if (!has_gone || is_made()) return;
    lose(peer, cause_of_loss(peer, event.kind == PeerEvent::kLeft
                                       ? "left while the group was made"
                                       : "died while the group was made: its connection ended"));
}

// Writes a dump if this rank is in no call. The group lives on until its next call, which may come after a launcher has
// ended this process. A rank in a call fails there, and writes a dump then.
void Group::dump_loss(const RankInfo &peer) noexcept
try {
    if (is_failed() || !describe_running().empty()) return;
    dump_of(cause_of_loss(peer, "died: its connection ended")).write();
} catch (const std::bad_alloc &) {
}

// One of a rank that is none of this group's matters where it keeps the table.
void Group::note_outsider(const PeerEvent &event) noexcept
{
    const bool has_gone = event.kind == PeerEvent::kEnded || event.kind == PeerEvent::kLeft;
    if (!has_gone || event.rank != members_.met->server_rank) return;
    const std::lock_guard lock(mutex_);
    has_left_[server()] = event.kind == PeerEvent::kLeft;
    changed_.notify_all();
}

// A group that goes on without the table does not do what ranks do by it.
void Group::check_table(const char *call)
{
    constexpr std::chrono::milliseconds kToAnswer{100}, kToBeHeard{1000};
    if (!members_.met || members_.met->server) return;
    try {
        const Deadline deadline = Deadline::after(std::chrono::duration<double>(kToAnswer).count());
        (void)members_.store->try_get(kCauseKey, deadline);
        return;
    } catch (const Error &error) {
        if (error.status() != YOKE_E_COMM) return;
    }
    if (server() >= 0) return await_cause(call);
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kToBeHeard, [this] { return has_left_.contains(server()); });
    }
    fail(
        YOKE_E_COMM,
        "%s: %s, the job's, which kept the table by which ranks meet, %s; collectives of this group go on without it, and shrink makes a group that has a table of its own",
        call, yoke::describe(members_.met->ranks.front()).c_str(),
        has_gone(server()).value_or(false) ? "has left" : "died: its connection ended");
}

// With the one that kept the table who waits for it can tell nobody, and ranks that wait for those wait in vain. What
// is about to be done without it is done.
void Group::miss_server(const RankInfo &peer) noexcept
{
    constexpr double kPatience = 0.3;
    if (peer.rank != server() || members_.met->server) return;
    tell_later(link_, kPatience, cause_of_loss(peer, "died: its connection ended"));
}

// By a thread that the table's answers come by, so it cannot wait for one: what stands then is heard as any cause of
// the others'.
bool Group::can_offer(const RankInfo &lost, const Cause &cause) noexcept
{
    constexpr double kPatience = 1;
    try {
        if (!heard_by_ || !members_.store->offer(kCauseKey, cause.encode())) return false;
        if (lost.rank == server()) return false;  // it hears it where it was only stopped
        tell_later(link_, kPatience, cause);
        return true;
    } catch (const std::exception &) {  // the table is out of reach
        return false;
    }
}

// All that lose the same rank tell the same of it. Who loses rank 0 has nobody left to agree with.
void Group::lose(const RankInfo &peer, const Cause &cause) noexcept
{
    if (members_.met && members_.met->server)
        fail_with(agreed(cause));
    else if (!can_offer(peer, cause))
        fail_with(cause);
}

void Group::abort(const std::string &reason)
{
    check_process();
    Cause cause{YOKE_E_CANCELLED, "the group was ended by abort() on " +
                                      yoke::describe(members_.self()) +
                                      (reason.empty() ? "" : ": " + reason)};
    fail_with(agreed(std::move(cause)));
    note_told();
}

}  // namespace yoke
