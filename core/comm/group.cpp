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

#include <cstring>
#include <new>
#include <utility>

namespace yoke {

// ---- How it begins ----------------------------------------------------------------------------------------------

Group::Group(const Members &members, const GroupOptions &options)
    : members_(members),
      options_(options),
      process_(getpid()),
      keys_(members_),
      departures_(members_),
      failure_(members_, keys_, departures_,
               [this](const Cause &failing) { return look(&failing); }),
      runner_(members_, keys_, departures_, failure_),
      calls_(*this, runner_, members_, options_.timeout_s),
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
        (void)Engine::find(options.engine, call);
        (void)config("YOKE_COMM_DUMP");  // what cannot be read is told here, not when it fails
        if (members.met) come_back_to(*members.met);
        group = Ref<Group>::adopt(new Group(members, options));
        note_living(group->news_.open(), *group);
    } catch (const std::exception &) {  // the others learn of it by the store alone
        GroupKeys::agree_in(*members.store,
                            cause_of(std::current_exception(), members.self(), call))
            .raise();
    }
    ShrinkPorts ports;
    group->runner_.attach(make_engine(group->members_, group->options_, group->keys_,
                                      group->failure_, &ports, deadline, call));
    group->shrink_.open(std::move(ports));
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
    } catch (const std::bad_alloc &) {  // what was begun is waited for
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

// Before the others see its connections end. Of a group that has failed nobody asks.
void Group::say_left() noexcept
{
    if (size() == 1 || !failure_.is_made() || is_failed() || has_said_left_.exchange(true)) return;
    try {
        keys_.say_left(ending());
    } catch (const std::bad_alloc &) {  // the others see its connections end
    }
}

void Group::leave() noexcept
{
    say_left();
    if (const std::shared_ptr<Engine> engine = failure_.engine()) engine->leave();
}

void Group::check_process() const
{
    if (!is_here())
        fail(
            YOKE_E_FORKED,
            "this group is that of process %d, of which this is a forked child; make one of its own with init",
            static_cast<int>(process_));
}

void Group::check_running(const char *call)
{
    check_process();
    failure_.raise_if_failed(call);
}

void Group::abort(const std::string &reason)
{
    check_process();
    failure_.fail({YOKE_E_CANCELLED, "the group was ended by abort() on " +
                                         yoke::describe(members_.self()) +
                                         (reason.empty() ? "" : ": " + reason)});
    failure_.note_told();
}

// ---- Its calls --------------------------------------------------------------------------------------------------

// The others wait for a call that this rank has not made; of a failed group for a shrink alone.
void Group::note_refused(const char *why, Refused what) noexcept
{
    if (!is_here() || size() == 1 || (is_failed() && what != Refused::kShrink)) return;
    // A refusal of these stands only until a collective is made behind it, which has the same number on all ranks.
    const bool is_numbered = what == Refused::kCollective || what == Refused::kBarrier;
    keys_.note_refused(what, is_numbered ? calls_.next_number() : 0, why);
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
        keys_.forget_refused(Refused::kMessage);
    else
        backwards_.note_asked();
    runner_.prepare(call);
    Ref<Work> work = is_async ? Work::begin(call.bytes()) : nullptr;
    hold_memory(call);
    IssuedCall issued{std::move(call), work, script_line()};
    if (Coalescing::is_open())
        Coalescing::add(Ref<Group>::share(this), std::move(issued));
    else
        issue(std::move(issued), !is_async);
    return work;
}

void Group::issue(IssuedCall issued, bool may_run_here)
{
    check_running(issued.call.name());
    runner_.stage(issued.call);
    for (const Ref<Work> &each : calls_.issue(std::move(issued), may_run_here)) each->wait(-1);
}

namespace {

bool writes_what(const Collective &call, const Tensor &other)
{
    return call.op != YOKE_COMM_SEND && call.out.present() && other.present() &&
           shares_memory(*call.out, *other);
}

// Of calls that are issued together none has been done when another one reads or writes.
void check_apart(const std::vector<IssuedCall> &issued)
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

std::vector<Ref<Work>> Group::run_together(std::vector<IssuedCall> calls, bool may_run_here)
{
    check_apart(calls);
    check_running(calls[0].call.name());
    for (IssuedCall &each : calls) runner_.stage(each.call);
    return calls_.issue(std::move(calls), may_run_here);
}

void Group::monitored_barrier(double seconds)
{
    const auto check = [&] {
        Coalescing::check_closed("monitored_barrier");
        if (!(seconds >= 0))
            fail(YOKE_E_VALUE,
                 "monitored_barrier: argument 'timeout' is %g; it takes seconds, from 0", seconds);
    };
    or_refuse(check, Refused::kBarrier);
    keys_.forget_refused(Refused::kBarrier);
    const Deadline deadline = Deadline::after(seconds);
    check_running("monitored_barrier");
    barrier_.wait(deadline);
}

// An ordinary call, so that who dies, is late or calls something else is found as in any other.
std::vector<int64_t> Group::exchange(int32_t called_as, std::vector<int64_t> mine)
{
    const char *name = collective_name(called_as);
    check_not_capturing(name);
    const auto make = [name](int64_t count) {
        return make_tensor(open_device(kHostKind), YOKE_I64, IntList(&count, 1), name);
    };
    const Tensor in = make(std::ssize(mine)), out = make(std::ssize(mine) * size());
    memcpy(in->data, mine.data(), in->nbytes());
    Collective call{YOKE_COMM_ALL_GATHER, -1, -1, in, out};
    call.called_as = called_as;
    check_collective(call, {rank(), size()});
    issue({std::move(call), nullptr, script_line()}, true);
    const auto *values = reinterpret_cast<const int64_t *>(out->data);
    return {values, values + out->numel};
}

Ref<Group> Group::split(int32_t color, int64_t key)
{
    or_refuse([] { Coalescing::check_closed("split"); });
    const std::vector<int64_t> given = or_fail("split", [&] {
        return exchange(kSplitCall, {color, key});
    });
    return split_.make(color, given);
}

Ref<Group> Group::shrink(double seconds)
{
    const auto check = [&] {
        if (!(seconds > 0))
            fail(YOKE_E_VALUE, "shrink: argument 'timeout' is %g; it takes seconds, more than 0",
                 seconds);
        Coalescing::check_closed("shrink");
    };
    or_refuse(check, Refused::kShrink);
    check_process();
    shrink_.check_not_shrunk();
    keys_.forget_refused(Refused::kShrink);
    return shrink_.run(seconds);
}

Tensor Group::empty(IntList shape, yoke_dtype dtype)
{
    const int64_t numel = or_refuse([&] {
        Coalescing::check_closed("empty");
        return checked_numel(shape, "empty");
    });
    const uint64_t bytes = static_cast<uint64_t>(numel) * item_size(dtype);
    const std::vector<int64_t> given = or_fail("empty", [&] {
        return exchange(kEmptyCall, {numel, dtype, free_memory_of_host()});
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

ReducerList &Group::reducers()
{
    check_process();
    return reducers_;
}

// ---- What it tells ----------------------------------------------------------------------------------------------

std::string Group::describe() const
{
    const Engine &engine = *runner_.engine();
    return format("rank %d of %d; %s: ", rank(), size(), engine.name()) + engine.describe();
}

std::vector<CallRecord> Group::records() const
{
    check_process();
    return calls_.records();
}

// `failing`: what it is about to fail with.
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
    for (const CallRecord &each : records) dump.records.push_back(dumped(each));
    return dump;
}

void Group::dump(const std::string &path) const
{
    check_process();
    write_dump(look(nullptr), path);
}

}  // namespace yoke
