#include "core/comm/group.h"

#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/comm/ending.h"
#include "core/comm/living_groups.h"
#include "core/comm/peer_memory.h"
#include "core/select/select.h"
#include "core/state/manifest.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace yoke {

// ---- How it begins ----------------------------------------------------------------------------------------------

Group::Group(const Members &members, const GroupOptions &options)
    : members_(members),
      options_(options),
      keys_(members_),
      departures_(members_),
      failure_(members_, keys_, departures_,
               [this](const Cause &failing) { return look(&failing); }),
      runner_(members_, keys_, departures_, failure_),
      flights_(std::make_shared<Flights>(static_cast<Flights::Listener &>(*this))),
      calls_(*this, runner_, *flights_, members_, options_.timeout_s),
      issuer_(members_, options_, keys_, departures_, failure_, runner_, calls_),
      news_(members_, keys_, departures_, failure_, calls_),
      barrier_(members_, keys_, departures_, failure_, calls_, store_call_),
      shrink_(members_, options_, keys_, departures_, failure_, store_call_),
      split_(members_, options_, failure_)
{
}

Ref<Group> Group::make(const Members &members, const GroupOptions &options, Deadline deadline,
                       const char *call)
{
    Ref<Group> group;
    try {
        (void)Engine::find(host_engine_of(options.backend), call);
        (void)config("YOKE_COMM_DUMP");  // an invalid value raises here, not at the failure
        if (members.met) come_back_to(*members.met);
        group = Ref<Group>::adopt(new Group(members, options));
        note_living(group->news_.open(), *group);
    } catch (const std::exception &) {  // only the store can notify the other ranks
        GroupKeys::agree_in(*members.store,
                            cause_of(std::current_exception(), members.self(), call))
            .raise();
    }
    Made made = make_engine(group->members_, group->options_, group->keys_, group->failure_,
                            deadline, call);
    group->runner_.attach(std::move(made.engine));
    group->issuer_.devices().take(std::move(made.devices));
    group->shrink_.open(std::move(made.ports));
    if (options.device)
        group->issuer_.devices().open(*options.device, call, signature_of(kOpenCall, 0), deadline);
    return group;
}

// ---- How it ends ------------------------------------------------------------------------------------------------

bool Group::end_pending() noexcept
{
    if (!calls_.has_pending()) return false;
    try {
        if (const std::string why = ending(); !why.empty())
            failure_.fail(
                cause_of(members_.self(), "has left the group: " + why + news_.describe_running()));
    } catch (const std::bad_alloc &) {  // begun calls are waited for
    }
    return calls_.has_pending();
}

Group::~Group()
{
    const struct Farewell {
        ~Farewell()
        {
            group.say_left();
            if (group.runner_.engine().use_count() > 1) group.runner_.engine()->leave();
        }
        Group &group;
    } when_all_is_done{*this};
    news_.close();
    (void)end_pending();
    failure_.await_dump();
    calls_.stop();
    flights_->close();
    issuer_.devices().close();
}

void Group::destroy() noexcept
{
    if (!is_here()) return;
    if (may_linger_ && ending().empty()) {
        note_lingering();
        if (calls_.linger()) return;
        note_lingering_ended();
    }
    delete this;
}

void Group::end_lingering() noexcept
{
    delete this;
    note_lingering_ended();
}

// Publishes this rank's departure, once, before the other ranks see its connections end. Does nothing in a failed
// group, where no rank asks, or if the group was never made.
void Group::say_left() noexcept
{
    if (size() == 1 || !failure_.is_made() || is_failed() || has_said_left_.exchange(true)) return;
    try {
        keys_.say_left(ending());
    } catch (const std::bad_alloc &) {  // the other ranks see its connections end
    }
}

void Group::leave() noexcept
{
    say_left();
    if (const std::shared_ptr<Engine> engine = failure_.engine()) engine->leave();
}

void Group::abort(const std::string &reason)
{
    issuer_.check_process();
    failure_.fail({YOKE_E_CANCELLED, "the group was ended by abort() on " +
                                         yoke::describe(members_.self()) +
                                         (reason.empty() ? "" : ": " + reason)});
    failure_.note_told();
    failure_.silence_devices();
}

// ---- Its calls --------------------------------------------------------------------------------------------------

// Publishes a refused call, for which the other ranks wait. In a failed group, publishes only a refused shrink,
// because the other ranks wait only for a shrink.
void Group::note_refused(const char *why, Refused what) noexcept
{
    if (!is_here() || size() == 1 || (is_failed() && what != Refused::kShrink)) return;
    // A refusal stands only until the next collective, which has the same number on all ranks.
    const bool is_numbered = what == Refused::kCollective || what == Refused::kBarrier;
    keys_.note_refused(what, is_numbered ? calls_.next_number() : 0, why);
}

Ref<Work> Group::run(Collective call, bool is_async)
{
    const bool is_message = call.is_message();
    const auto check = [&] {
        check_not_capturing(call.name());
        check_collective(call, {rank(), size()});
        if (const Device *device = call.device(); device && !call.may_be_staged)
            issuer_.devices().check_device(*device, call.name());
    };
    or_refuse(check, is_message ? Refused::kMessage : Refused::kCollective);
    if (is_message)
        keys_.forget_refused(Refused::kMessage);
    else
        backwards_.note_asked();
    IssuedCall issued = issuer_.prepare(std::move(call), is_async);
    const Ref<Work> work = issued.work;
    if (Coalescing::is_open())
        Coalescing::add(Ref<Group>::share(this), std::move(issued));
    else
        issuer_.issue(std::move(issued));
    return work;
}

void Group::monitored_barrier(double seconds)
{
    const auto check = [&] {
        Coalescing::check_closed("monitored_barrier");
        if (!(seconds >= 0))
            fail(YOKE_E_VALUE,
                 "monitored_barrier: argument 'timeout' is %g; it must be 0 or more seconds",
                 seconds);
    };
    or_refuse(check, Refused::kBarrier);
    keys_.forget_refused(Refused::kBarrier);
    const Deadline deadline = Deadline::after(seconds);
    check_running("monitored_barrier");
    barrier_.wait(deadline);
}

Ref<Group> Group::split(int32_t color, int64_t key)
{
    or_refuse([] { Coalescing::check_closed("split"); });
    const std::vector<int64_t> given = or_fail("split", [&] {
        return issuer_.exchange(kSplitCall, {color, key});
    });
    return split_.make(color, given);
}

Ref<Group> Group::shrink(double seconds)
{
    constexpr double kToEnd = 1;
    const auto check = [&] {
        if (!(seconds > 0))
            fail(YOKE_E_VALUE, "shrink: argument 'timeout' is %g; it must be above 0 seconds",
                 seconds);
        Coalescing::check_closed("shrink");
    };
    or_refuse(check, Refused::kShrink);
    issuer_.check_process();
    shrink_.check_not_shrunk();
    keys_.forget_refused(Refused::kShrink);
    const Deadline deadline = Deadline::after(seconds);
    // If the group has not failed, its end aborts healthy calls, on which an optimizer's step may depend. So they get
    // some time.
    (void)flights_->have_ended(
        flights_->issued_ever(), [this] { return is_failed(); },
        deadline.within(std::min(kToEnd, seconds / 4)));
    return shrink_.run(deadline.remaining_s());
}

Tensor Group::empty(IntList shape, yoke_dtype dtype, Device &device)
{
    const auto check = [&] {
        Coalescing::check_closed("empty");
        checked_numel(shape, "empty");
    };
    or_refuse(check);
    return device.host ? empty_on_host(shape, dtype) : empty_on_device(shape, dtype, device);
}

Tensor Group::empty_on_host(IntList shape, yoke_dtype dtype)
{
    const int64_t numel = checked_numel(shape, "empty");
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    const std::vector<int64_t> given = or_fail("empty", [&] {
        return issuer_.exchange(kEmptyCall, {numel, dtype, free_memory_of(open_device(kHostKind))});
    });
    if (const std::string unlike = unlike_memory(given, members_.ranks); !unlike.empty())
        failure_.fail_alone("empty", {YOKE_E_COMM, unlike});
    check_memory_of_hosts(given, members_.ranks, bytes);
    const auto allocate = [&] {
        const CallQueue::Turn turn(calls_);
        check_running("empty");
        return runner_.allocate(bytes);
    };
    void *memory = bytes ? or_fail("empty", allocate) : nullptr;
    return lend(runner_.engine(), memory, shape, dtype, bytes);
}

Tensor Group::empty_on_device(IntList shape, yoke_dtype dtype, Device &device)
{
    const int64_t numel = checked_numel(shape, "empty");
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    check_running("empty");
    yoke_comm_signature said = signature_of(kEmptyCall, 3);
    said.on_device = 1;
    const std::shared_ptr<DeviceEngine> serving = issuer_.devices().open(device, "empty", said);
    if (!serving) return make_tensor(device, dtype, shape, "empty");
    const std::vector<int64_t> given = or_fail("empty", [&] {
        return issuer_.exchange(said, {numel, dtype, free_memory_of(device)});
    });
    if (const std::string unlike = unlike_memory(given, members_.ranks); !unlike.empty())
        failure_.fail_alone("empty", {YOKE_E_COMM, unlike});
    check_memory_of_devices(given, members_.ranks, bytes);
    void *memory =
        bytes ? or_fail("empty", [&] { return issuer_.devices().allocate(*serving, bytes, said); })
              : nullptr;
    return lend(serving, memory, shape, dtype, bytes);
}

ReducerList &Group::reducers()
{
    issuer_.check_process();
    return reducers_;
}

// ---- Facts about the group --------------------------------------------------------------------------------------

std::string Group::describe() const
{
    const Engine &engine = *runner_.engine();
    const std::shared_ptr<DeviceEngine> device = issuer_.devices().engine();
    const std::shared_ptr<Engine> theirs = device ? device->engine() : nullptr;
    return format("rank %d of %d; %s: ", rank(), size(), engine.name()) + engine.describe() +
           (theirs ? format("; %s: ", theirs->name()) + theirs->describe() : "");
}

std::vector<CallRecord> Group::records() const
{
    issuer_.check_process();
    return calls_.records();
}

// Returns a dump of the group: ranks, last calls and cause. `failing` is the cause with which the group is about to
// fail, or null.
Dump Group::look(const Cause *failing) const
{
    Dump dump;
    dump.yoke = format("%d.%d.%d", YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR, YOKE_VERSION_PATCH);
    dump.group = members_.number;
    dump.rank = rank();
    dump.ranks = members_.ranks;
    dump.timeout_s = options_.timeout_s;
    dump.time = utc_time();
    std::vector<CallRecord> records;
    dump.cause = failure_.cause(&dump.failed_s);
    const CallQueue::Counts counts = calls_.counts(&records, &dump.now_s);
    if (!dump.cause && failing) dump.cause = *failing, dump.failed_s = dump.now_s;
    dump.calls = counts.calls;
    dump.sent = counts.sent;
    dump.received = counts.received;
    if (const StoreCall::Place place = store_call_.place(); place.call) {
        dump.store_call = DumpedStoreCall{place.call, place.since_s, {}, {}, 0};
        if (const ScriptLine *line = place.line)
            dump.store_call->file = line->file, dump.store_call->function = line->function,
            dump.store_call->line = line->line;
    }
    if (const std::shared_ptr<Engine> engine = failure_.engine())
        dump.ways = format("%s: ", engine->name()) + engine->describe();
    if (const std::shared_ptr<DeviceEngine> device = issuer_.devices().engine())
        if (const std::shared_ptr<Engine> engine = device->engine())
            dump.ways += format("; %s: ", engine->name()) + engine->describe();
    for (const CallRecord &each : records) dump.records.push_back(dumped(each));
    return dump;
}

void Group::dump(const std::string &path) const
{
    issuer_.check_process();
    write_dump(look(nullptr), path);
}

}  // namespace yoke
