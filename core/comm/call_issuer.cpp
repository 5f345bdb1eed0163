#include "core/comm/call_issuer.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/select/select.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace yoke {

CallIssuer::CallIssuer(const Members &members, const GroupOptions &options, const GroupKeys &keys,
                       const Departures &departures, Failure &failure, CallRunner &runner,
                       CallQueue &calls)
    : members_(members),
      options_(options),
      process_(getpid()),
      failure_(failure),
      runner_(runner),
      calls_(calls),
      devices_(
          members, options, keys, departures, failure, calls,
          [this](const yoke_comm_signature &said, std::vector<int64_t> mine,
                 std::optional<Deadline> until) { return exchange(said, std::move(mine), until); })
{
}

bool CallIssuer::is_here() const noexcept
{
    return process_ == getpid();
}

void CallIssuer::check_process() const
{
    if (!is_here())
        fail(
            YOKE_E_FORKED,
            "this group belongs to process %d, and this process is its forked child; call init to make a group in this process",
            static_cast<int>(process_));
}

void CallIssuer::check_running(const char *call)
{
    check_process();
    failure_.raise_if_failed(call);
}

void CallIssuer::check_coalesced(const char *call, bool is_coalesced) const
{
    if (options_.is_one_of_several && members_.size() > 1 && !is_coalesced)
        fail_in(
            call, YOKE_E_STATE,
            "the ranks of this group are devices of one process; put the calls of all ranks in one coalesce, or give each rank a thread with its own coalesce");
}

// Returns a call ready for `issue`, with a work if `is_async`. If an engine of the device serves the device's
// tensors, the call becomes a `LateCall`; else the call is staged.
IssuedCall CallIssuer::prepare(Collective call, bool is_async)
{
    IssuedCall issued{std::move(call), nullptr, script_line()};
    const Device *const device = issued.call.device();
    if (device && !device->host) [[unlikely]] {
        check_running(issued.call.name());
        issued.late = devices_.begin(issued.call);
        if (!issued.late.present()) runner_.prepare(issued.call);
    }
    if (is_async) {
        auto tail = issued.late.present() ? std::make_unique<LateTail>(issued.late) : nullptr;
        issued.work = Work::begin(issued.call.bytes(), std::move(tail));
    }
    hold_memory(issued.call);
    return issued;
}

void CallIssuer::stage(IssuedCall &issued)
{
    if (issued.late.present()) [[unlikely]]
        runner_.stage_by(issued.call, [&] { issued.late->stage(issued.call, place()); });
    else
        runner_.stage(issued.call);
}

void CallIssuer::issue(IssuedCall issued)
{
    check_running(issued.call.name());
    stage(issued);
    if (issued.late.present()) [[unlikely]] {
        DeviceCalls::Batch batch{&devices_, {&issued, 1}};
        return DeviceCalls::launch({&batch, 1});
    }
    const bool may_run_here = !issued.work.present();
    for (const Ref<Work> &each : calls_.issue({&issued, 1}, may_run_here)) each->wait(-1);
}

// ---- Several at once --------------------------------------------------------------------------------------------

namespace {

bool writes_what(const Collective &call, const Tensor &other)
{
    return call.op != YOKE_COMM_SEND && call.out.present() && other.present() &&
           shares_memory(*call.out, *other);
}

// Raises YOKE_E_STATE if two calls of a scope use the same memory and either writes there. Calls of a scope are
// issued together, so no call is done before another reads or writes.
void check_apart(const std::vector<IssuedCall> &issued)
{
    for (size_t i = 0; i < issued.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            const Collective &a = issued[j].call, &b = issued[i].call;
            if (writes_what(a, b.in) || writes_what(a, b.out) || writes_what(b, a.in))
                fail(
                    YOKE_E_STATE,
                    "coalesce: %s and %s of one scope use the same memory, and one of the calls writes it; put each call in its own scope, one after the other",
                    a.name(), b.name());
        }
}

bool blocks(const IssuedCall &call)
{
    return !call.work.present();
}

bool is_late(const IssuedCall &call)
{
    return call.late.present();
}

}  // namespace

// Issues calls of several groups. These calls run in the threads of their groups, so no group waits for another
// group. If the deferred calls of a group cannot be issued, no group's deferred calls are issued, because an engine
// would wait for the missing calls.
std::vector<Ref<Work>> CallIssuer::issue_together(const std::vector<Together *> &groups)
{
    const auto has_late = [](const Together *each) {
        return std::ranges::any_of(each->calls, is_late);
    };
    std::exception_ptr failure;
    for (Together *each : groups) try {
            check_apart(each->calls);
            each->of->check_running(each->calls[0].call.name());
            for (IssuedCall &one : each->calls) each->of->stage(one);
        } catch (...) {
            each->failure = std::current_exception();
            if (!failure && has_late(each)) failure = each->failure;
        }
    std::vector<Ref<Work>> awaited;
    std::vector<DeviceCalls::Batch> batches;
    std::vector<Together *> launched;
    for (Together *each : groups) {
        if (each->failure) continue;
        if (has_late(each)) {
            each->failure = failure;
            if (!failure)
                launched.push_back(each), batches.push_back({&each->of->devices_, each->calls});
            continue;
        }
        try {
            const bool may_run_here =
                groups.size() == 1 && std::ranges::any_of(each->calls, blocks);
            std::ranges::move(each->of->calls_.issue(each->calls, may_run_here),
                              std::back_inserter(awaited));
        } catch (...) {
            each->failure = std::current_exception();
        }
    }
    if (batches.empty()) return awaited;
    try {
        DeviceCalls::launch(batches);
    } catch (...) {
        failure = std::current_exception();
    }
    for (size_t i = 0; i < batches.size(); ++i) {
        launched[i]->failure = failure;
        launched[i]->were_issued = batches[i].were_issued;
        std::ranges::move(batches[i].awaited, std::back_inserter(awaited));
    }
    return awaited;
}

// ---- Calls of the core's own ------------------------------------------------------------------------------------

// Exchanges numbers by an ordinary all_gather. So a rank that dies, is late or makes another call is found as in any
// other call.
std::vector<int64_t> CallIssuer::exchange(const yoke_comm_signature &said,
                                          std::vector<int64_t> mine, std::optional<Deadline> until)
{
    const char *name = collective_name(said.op);
    check_not_capturing(name);
    const auto make = [name](int64_t count) {
        return make_tensor(open_device(kHostKind), YOKE_I64, IntList(&count, 1), name);
    };
    const Tensor in = make(std::ssize(mine)), out = make(std::ssize(mine) * members_.size());
    memcpy(in->data, mine.data(), in->nbytes());
    Collective call{YOKE_COMM_ALL_GATHER, -1, -1, in, out};
    call.said_as = said;
    check_collective(call, place());
    IssuedCall issued{std::move(call), nullptr, script_line()};
    issued.until = until;
    issue(std::move(issued));
    const auto *values = reinterpret_cast<const int64_t *>(out->data);
    return {values, values + out->numel};
}

std::vector<int64_t> CallIssuer::exchange(int32_t called_as, std::vector<int64_t> mine)
{
    return exchange(signature_of(called_as, std::ssize(mine)), std::move(mine));
}

}  // namespace yoke
