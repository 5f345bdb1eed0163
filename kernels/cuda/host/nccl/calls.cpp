#include "kernels/cuda/host/nccl/calls.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "kernels/common/collective.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/memory.h"
#include "kernels/cuda/host/nccl/plan.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

namespace {

struct Item {
    Comm *comm;
    yoke_collective call;
};

Place place_of_call(const Plan &plan)
{
    const yoke_collective &call = plan.call();
    return place_of(plan.comm(), kernels::call_name(call.op), call.stream);
}

// Returns the soonest limit of the plans, because calls that are issued together fail together.
Limit limit_of(const Plan *plans, size_t count)
{
    Limit soonest;
    for (size_t i = 0; i < count; ++i) {
        const double own = plans[i].call().timeout_s;
        const Limit limit = Limit::of(own >= 0 ? own : plans[i].comm().patience_s);
        if (limit.until < soonest.until) soonest = limit;
    }
    return soonest;
}

yoke_status check(const Comm &comm, const yoke_collective &call)
{
    if (const yoke_status status =
            kernels::check_arguments({g_host, "nccl", comm.rank, comm.size}, call))
        return status;
    const Place place = place_of(comm, kernels::call_name(call.op));
    if (is_forked())
        return fail_at(place, YOKE_E_FORKED,
                       "NCCL does not work in a forked child; start the child with spawn or exec");
    if (call.op == YOKE_COMM_BARRIER)
        return fail_at(place, YOKE_E_UNSUPPORTED,
                       "NCCL has no barrier; use the barrier of the cpu engine");
    if (comm.aborted.load()) {
        if (call.fault) call.fault->kind = YOKE_COMM_FAULT_ABORTED;
        return fail_at(place, YOKE_E_CANCELLED, "this communicator was aborted");
    }
    if (comm.has_failed.load())
        return fail_at(place, YOKE_E_STATE, "an earlier call of this communicator has failed");
    return YOKE_OK;
}

// ---- plans that are issued together ---------------------------------------------------------------------------------

// Turns of communicators, in the order of their addresses: two threads take the same turns in the same order.
class Turns {
public:
    // Takes the turn of each plan's communicator, once. Returns kDone, or why a turn was not given; kAborted if host
    // memory is missing.
    Ending take(Plan *plans, size_t count, const Limit &limit);

private:
    std::unique_ptr<Comm *[]> comms_;
    std::unique_ptr<std::unique_ptr<Turn>[]> turns_;
};

Ending Turns::take(Plan *plans, size_t count, const Limit &limit)
{
    comms_.reset(new (std::nothrow) Comm *[count]);
    turns_.reset(new (std::nothrow) std::unique_ptr<Turn>[count]);
    if (!comms_ || !turns_) return Ending::kAborted;
    for (size_t i = 0; i < count; ++i) comms_[i] = &plans[i].comm();
    std::sort(comms_.get(), comms_.get() + count);
    Comm **const end = std::unique(comms_.get(), comms_.get() + count);
    for (size_t i = 0; comms_.get() + i < end; ++i) {
        turns_[i].reset(new (std::nothrow) Turn(*comms_[i], limit));
        if (!turns_[i]) return Ending::kAborted;
        if (!turns_[i]->is_given()) return turns_[i]->ending();
    }
    return Ending::kDone;
}

// Returns whether the plan's communicator was aborted or has ended, which may happen during the wait for its turn.
bool has_gone(const Plan &plan)
{
    return plan.comm().aborted.load() || !plan.comm().handle;
}

// Reports why the plan was not issued, notes it in the call's fault, and returns the failure.
yoke_status fail_before(const Plan &plan, Ending ending)
{
    const char *function = ending == Ending::kStuck ? plan.comm().turn.in.load() : nullptr;
    return fail_wait(place_of_call(plan), nullptr, {ending}, function ? function : plan.function(),
                     plan.call().fault);
}

yoke_status wait_for(Plan &plan, ncclResult_t said, const char *function, const Limit &limit)
{
    const Outcome outcome = settle(plan.comm(), said, limit);
    if (outcome.ending == Ending::kDone) [[likely]]
        return YOKE_OK;
    return fail_wait(place_of_call(plan), plan.comm().handle, outcome, function, plan.call().fault);
}

ncclResult_t issue_alone(Plan &plan)
{
    const Inside inside(plan.comm().turn.in, plan.function());
    return plan.issue(*find_calls());
}

// Scope of a group of NCCL's, on all of its communicators.
class InsideGroup {
public:
    InsideGroup(Plan *plans, size_t count) : plans_(plans), count_(count) { note("ncclGroupEnd"); }
    ~InsideGroup() { note(nullptr); }
    InsideGroup(const InsideGroup &) = delete;
    InsideGroup &operator=(const InsideGroup &) = delete;

private:
    void note(const char *function)
    {
        for (size_t i = 0; i < count_; ++i) plans_[i].comm().turn.in.store(function);
    }
    Plan *const plans_;
    const size_t count_;
};

// Issues the plans in a group of NCCL and waits until NCCL has taken them. Returns the first failure. NCCL requires
// the end of a group also after a failed call.
yoke_status issue_together(Plan *plans, size_t count, const Limit &limit)
{
    const Calls &nccl = *find_calls();
    std::optional<InsideGroup> inside(std::in_place, plans, count);
    ncclResult_t said = nccl.ncclGroupStart();
    if (said != ncclSuccess) return wait_for(plans[0], said, "ncclGroupStart", limit);
    const Plan *failed = nullptr;
    for (size_t i = 0; i < count && !failed; ++i) {
        const ncclResult_t result = plans[i].issue(nccl);
        if (result == ncclSuccess || result == ncclInProgress) continue;
        failed = &plans[i];
        said = result;
    }
    const ncclResult_t ended = nccl.ncclGroupEnd();
    inside.reset();
    if (failed)
        return fail_nccl(place_of_call(*failed), failed->comm().handle, said, failed->function());
    for (size_t i = 0; i < count; ++i)
        if (const yoke_status status = wait_for(plans[i], ended, "ncclGroupEnd", limit))
            return status;
    return YOKE_OK;
}

// Marks the communicators as failed before their turns end, keeps the memory of the calls, and returns `status`. A
// thread of NCCL may still launch work of the failed call, so the next call must not be issued after it.
yoke_status give_up(Plan *plans, size_t count, yoke_status status)
{
    for (size_t i = 0; i < count; ++i) {
        plans[i].comm().has_failed.store(true);
        plans[i].keep_memory();
    }
    return status;
}

// Issues the plans, in the turn of all communicators. Fails if a communicator was aborted or has failed before. After
// a failure of NCCL, marks the communicators as failed.
yoke_status issue_in_turn(Plan *plans, size_t count, bool as_group, const Limit &limit)
{
    for (size_t i = 0; i < count; ++i) {
        Comm &comm = plans[i].comm();
        if (has_gone(plans[i])) return fail_before(plans[i], Ending::kAborted);
        if (comm.has_failed.load())
            return fail_at(place_of_call(plans[i]), YOKE_E_STATE,
                           "an earlier call of this communicator has failed");
    }
    for (size_t i = 0; i < count; ++i) {
        plans[i].comm().last.stream.store(static_cast<cudaStream_t>(plans[i].call().stream));
        plans[i].comm().last.has_called.store(true);
    }
    const yoke_status status =
        as_group ? issue_together(plans, count, limit)
                 : wait_for(plans[0], issue_alone(plans[0]), plans[0].function(), limit);
    if (status) [[unlikely]]
        return give_up(plans, count, status);
    return YOKE_OK;
}

yoke_status issue(Plan *plans, size_t count)
{
    const Limit limit = limit_of(plans, count);
    if (count == 1 && !plans[0].needs_group(*find_calls())) {
        const Turn turn(plans[0].comm(), limit);
        return turn.is_given() ? issue_in_turn(plans, 1, false, limit)
                               : fail_before(plans[0], turn.ending());
    }
    Turns turns;
    const Ending ending = turns.take(plans, count, limit);
    return ending == Ending::kDone ? issue_in_turn(plans, count, true, limit)
                                   : fail_before(plans[0], ending);
}

// ---- from calls to plans --------------------------------------------------------------------------------------------

// Runs f in the context of a device; `current` is the device of the thread's context.
template <class F>
yoke_status in_device(Device *device, const Device *current, const F &f)
{
    if (device == current) [[likely]]
        return f();
    const RelaxedScope scope(device, "group_end");
    return scope.status() ? scope.status() : f();
}

// Prepares, issues and finishes plans, in the context of the first call's device. NCCL restores the thread's previous
// device; for a thread without a device, NCCL would make a context on the first card.
yoke_status run_plans(Plan *plans, const Item *items, size_t count)
{
    Device *const current = items[0].comm->device;
    const RelaxedScope scope(current, kernels::call_name(items[0].call.op));
    yoke_status status = scope.status();
    for (size_t i = 0; i < count && !status; ++i)
        status = in_device(items[i].comm->device, current,
                           [&] { return plans[i].prepare(*items[i].comm, items[i].call); });
    if (!status) status = issue(plans, count);
    for (size_t i = 0; i < count && !status; ++i)
        status = in_device(items[i].comm->device, current, [&] { return plans[i].finish(); });
    return status;
}

// Marks the communicators of calls issued together as failed. Copies the first noted fault to every call.
void tell_all(const Item *items, size_t count)
{
    const yoke_comm_fault *told = nullptr;
    for (size_t i = 0; i < count && !told; ++i)
        if (items[i].call.fault && items[i].call.fault->kind) told = items[i].call.fault;
    for (size_t i = 0; i < count; ++i) {
        items[i].comm->has_failed.store(true);
        if (told && items[i].call.fault) *items[i].call.fault = *told;
    }
}

yoke_status run_items(Plan *plans, const Item *items, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (items[i].comm->freeing.has_marked.load(std::memory_order_relaxed))
            free_marked(*items[i].comm, {});
    const yoke_status status = run_plans(plans, items, count);
    if (status) tell_all(items, count);
    return status;
}

// ---- groups ---------------------------------------------------------------------------------------------------------

// Calls of this thread that wait for the end of the thread's outermost group.
struct Group {
    int depth;
    Item *items;
    size_t count, room;
};
thread_local Group t_group;

bool keep(Group &group, const Item &item)
{
    if (group.count == group.room) {
        const size_t room = group.room ? 2 * group.room : 16;
        auto *items = static_cast<Item *>(realloc(group.items, room * sizeof(Item)));
        if (!items) return false;
        group.items = items;
        group.room = room;
    }
    group.items[group.count++] = item;
    return true;
}

}  // namespace

yoke_status call(Comm &comm, const yoke_collective &record)
{
    clear(record.fault);
    if (const yoke_status status = check(comm, record)) return status;
    const Item item{&comm, record};
    if (t_group.depth)
        return keep(t_group, item)
                   ? YOKE_OK
                   : fail_at(place_of(comm, kernels::call_name(record.op)), YOKE_E_OOM,
                             "no host memory for a group of %zu calls", t_group.count + 1);
    Plan plan;
    return run_items(&plan, &item, 1);
}

void begin_group()
{
    ++t_group.depth;
}

yoke_status end_group(Comm &comm)
{
    if (!t_group.depth)
        return fail_at(place_of(comm, "group_end"), YOKE_E_STATE,
                       "group_end was called without group_begin");
    if (--t_group.depth) return YOKE_OK;
    const Group group = t_group;
    t_group = {};
    yoke_status status = YOKE_OK;
    if (group.count) {
        const std::unique_ptr<Plan[]> plans(new (std::nothrow) Plan[group.count]);
        status = plans ? run_items(plans.get(), group.items, group.count)
                       : fail_at(place_of(comm, "group_end"), YOKE_E_OOM,
                                 "no host memory for a group of %zu calls", group.count);
    }
    free(group.items);
    return status;
}

}  // namespace yoke::cuda::nccl
