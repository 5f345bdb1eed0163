#include "core/comm/late/device_calls.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/comm/late/call_watch.h"
#include "core/comm/late/lane_turns.h"
#include "core/device/free_memory.h"
#include "core/memory/memory.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

namespace yoke {

DeviceCalls::DeviceCalls(const Members &members, const GroupOptions &options, const GroupKeys &keys,
                         const Departures &departures, Failure &failure, CallQueue &calls,
                         Exchange exchange)
    : members_(members),
      options_(options),
      failure_(failure),
      blame_(members, keys, departures),
      calls_(calls),
      exchange_(std::move(exchange))
{
}

void DeviceCalls::close() noexcept
{
    if (const std::shared_ptr<DeviceEngine> held = engine()) held->close();
}

// ---- How the communicator is made -------------------------------------------------------------------------------

namespace {

std::vector<int64_t> words_of(std::string_view bytes)
{
    std::vector<int64_t> words((bytes.size() + sizeof(int64_t) - 1) / sizeof(int64_t));
    if (!bytes.empty()) memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

// Divides the words by the number of ranks, and returns the first `bytes` bytes of each rank's words.
std::vector<std::string> bytes_of(const std::vector<int64_t> &words, size_t ranks, size_t bytes)
{
    const size_t each = words.size() / ranks;
    std::vector<std::string> told;
    for (size_t rank = 0; rank < ranks; ++rank)
        told.emplace_back(reinterpret_cast<const char *>(&words[rank * each]), bytes);
    return told;
}

// Empties the device's cache if less than 1 GiB is free. A library of collectives takes memory outside the allocator,
// and may crash if the device has no free memory.
void make_room(Device &device)
{
    constexpr uint64_t kWanted = uint64_t{1} << 30;
    FreeMemory memory;
    if (free_memory_on(device, &memory) == YOKE_OK && memory.free < kWanted) empty_cache(&device);
}

}  // namespace

std::shared_ptr<Engine> DeviceCalls::connect_to(Device &device, const yoke_comm_signature &said,
                                                std::optional<Deadline> until)
{
    EngineInit init;
    init.rank = members_.rank;
    init.size = members_.size();
    init.address = members_.self().address;
    init.patience_s = options_.timeout_s;
    init.device = device.handle;
    init.is_over = [this] { return failure_.is_failed() || is_interrupted(); };
    const auto ranks = static_cast<size_t>(members_.size());
    init.all_gather = [&](const std::string &mine) {
        return bytes_of(exchange_(said, words_of(mine), until), ranks, mine.size());
    };
    const double until_exchanged =
        std::min(options_.timeout_s, until ? until->remaining_s() : options_.init_timeout_s);
    const std::string own_id =
        members_.rank == 0 ? Engine::make_id(*choice_.table, library_time_s(until_exchanged))
                           : std::string(YOKE_COMM_ID_BYTES, '\0');
    init.id = init.all_gather(own_id)[0];
    init.timeout_s = until ? until->remaining_s() : options_.init_timeout_s;  // all ranks are here
    make_room(device);
    return connect(*choice_.table, init);
}

std::shared_ptr<DeviceEngine> DeviceCalls::make(Device &device, const char *call,
                                                const yoke_comm_signature &said,
                                                std::optional<Deadline> until)
try {
    calls_.ensure_thread(call);
    CallWatch::ensure_thread(call);
    auto lane = CommLane::of(device);
    auto engine = connect_to(device, said, until);
    auto made =
        std::make_shared<DeviceEngine>(format("rank %d of %d", members_.rank, members_.size()),
                                       std::move(lane), std::move(engine), failure_.devices());
    failure_.attach(made);
    log(LogLevel::kInfo, "%s: tensors of %s use %s: %s", call, device.name.c_str(),
        choice_.table->name, made->engine()->describe().c_str());
    return made;
} catch (const EngineFailure &found) {
    if (found.fault.kind == YOKE_COMM_FAULT_DIED) failure_.await(call);
    if (failure_.is_failed()) failure_.raise_amid(call);
    CurrentCall current;
    current.making = call;
    bool can_agree = true;
    const Cause mine = found.fault.kind == YOKE_COMM_FAULT_LATE
                           ? blame_.cause_of(found, current, &can_agree)
                           : yoke::cause_of(found.fault, found.status, found.text, current,
                                            members_.self(), members_.ranks)
                                 .of(call);
    if (!can_agree) failure_.fail_with(mine);
    failure_.fail_alone(call, mine);
} catch (const std::exception &) {
    if (failure_.is_failed()) throw;
    failure_.fail_alone(call, yoke::cause_of(std::current_exception(), members_.self(), call));
}

bool DeviceCalls::may_serve(const Device &device) const noexcept
{
    if (!choice_.table || choice_.kind != device.kind()) return false;
    const DeviceEngine *const made = known();
    return !made || &made->device() == &device;
}

void DeviceCalls::check_device(const Device &device, const char *call) const
{
    if (device.host || !choice_.table || device.kind() != choice_.kind) return;
    const DeviceEngine *const made = known();
    if (made && &made->device() != &device)
        fail_in(
            call, YOKE_E_VALUE,
            "the call is for %s, but since its first collective this group uses %s; use this device, or make another group",
            device.name.c_str(), made->device().name.c_str());
}

std::shared_ptr<DeviceEngine> DeviceCalls::open(Device &device, const char *call,
                                                yoke_comm_signature said,
                                                std::optional<Deadline> until)
{
    if (!choice_.table || choice_.kind != device.kind()) return nullptr;
    check_device(device, call);
    if (known()) return engine_;
    const std::lock_guard making(making_);
    check_device(device, call);
    if (known()) return engine_;
    said.on_device = 2;
    engine_ = make(device, call, said, until);
    is_made_.store(true, std::memory_order_release);
    return engine_;
}

// ---- From a call to the stream ----------------------------------------------------------------------------------

std::string DeviceCalls::why_staged(const Device &device) const
{
    if (!choice_.table) return choice_.why_staged;
    if (const DeviceEngine *const made = known())
        return format("this group's collectives use %s", made->device().name.c_str());
    return format(
        "the call precedes the group's first collective on %s; give init the device, or make a collective first",
        device.name.c_str());
}

void DeviceCalls::tell_staged(const Collective &call, const Device &device)
{
    const std::string why = why_staged(device);
    if (why.empty() || has_told_staged_.exchange(true)) return;
    log(LogLevel::kWarn, "%s: tensors of %s pass through host memory: %s", call.name(),
        device.name.c_str(), why.c_str());
}

Ref<LateCall> DeviceCalls::begin(const Collective &call)
{
    Device *const device = call.device();
    if (!device || device->host) return nullptr;
    const bool is_early = call.is_message() && !known();
    const bool is_staged = is_early || (call.may_be_staged && !may_serve(*device));
    std::shared_ptr<DeviceEngine> serving;
    if (!is_staged) serving = open(*device, call.name(), signature_of(call));
    if (serving) return LateCall::make(std::move(serving));
    tell_staged(call, *device);
    return nullptr;
}

namespace {

// Deferred calls of a group during their launch.
struct Launch {
    DeviceCalls::Batch &batch;
    LateCall &first;
    std::shared_ptr<Engine> engine;  // outlives the launch, though the group may end

    template <class F>
    void each_call(const F &f) const
    {
        for (const IssuedCall &each : batch.calls)
            if (each.late.present()) f(*each.late);
    }
};
using Launches = std::vector<Launch>;

Launches launches_of(std::span<DeviceCalls::Batch> batches)
{
    Launches launches;
    launches.reserve(batches.size());
    for (DeviceCalls::Batch &each : batches) {
        const auto is_late = [](const IssuedCall &call) { return call.late.present(); };
        const auto first = std::ranges::find_if(each.calls, is_late);
        if (first == each.calls.end()) continue;
        LateCall &call = *first->late;
        launches.push_back({each, call, call.engine().engine()});
    }
    return launches;
}

std::vector<CommLane *> lanes_of(const Launches &launches)
{
    std::vector<CommLane *> all;
    all.reserve(launches.size());
    for (const Launch &each : launches) all.push_back(&each.first.engine().lane());
    return all;
}

// Gives the calls to the engines. The groups' scopes are nested, so an engine issues all calls when the outermost
// scope ends.
void give_to_engines(const Launches &launches)
{
    if (launches.size() == 1 && launches[0].batch.calls.size() == 1) {
        Engine::Together alone(nullptr);
        return launches[0].first.launch(*launches[0].engine, alone);
    }
    std::list<Engine::Together> scopes;
    for (const Launch &each : launches) {
        Engine::Together &scope = scopes.emplace_back(each.engine.get());
        each.each_call([&](LateCall &call) { call.launch(*each.engine, scope); });
    }
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) scope->end();
}

void end_launches(const Launches &launches)
{
    for (const Launch &each : launches) {
        each.each_call([](LateCall &call) { call.bring_back(); });
        CommLane &lane = each.first.engine().lane();
        const Ref<Fence> done = fence_behind(lane.device(), lane.id());
        each.each_call([&](LateCall &call) { call.end_launch(done); });
    }
}

}  // namespace

void DeviceCalls::launch(std::span<Batch> batches)
{
    const Launches launches = launches_of(batches);
    Deadline until = Deadline::never();
    for (const Launch &each : launches) until = until.within(each.batch.of->options_.timeout_s);
    const auto refuse = [&](bool keeps_memory) {
        for (const Launch &each : launches)
            each.each_call([&](LateCall &call) { call.refuse(keeps_memory); });
    };
    const auto is_over = [&] {
        return std::ranges::any_of(
            launches, [](const Launch &each) { return each.batch.of->failure_.is_failed(); });
    };
    try {
        std::vector<CommLane *> lanes = lanes_of(launches);
        LaneTurns turns(lanes, until, is_over);
        turns.check_given();
        for (Batch &each : batches) {
            for (IssuedCall &one : each.calls) one.until = one.until.value_or(until);
            each.awaited = each.of->calls_.issue(each.calls, false);
            each.were_issued = true;
        }
        turns.note_user(launches[0].first.as_user());
        give_to_engines(launches);
        end_launches(launches);
    } catch (const HeldLane &held) {
        refuse(false);
        for (const Launch &each : launches) each.batch.of->note_held(each.first, held, until);
    } catch (const EngineFailure &failure) {
        refuse(failure.fault.keeps_memory != 0);
        for (const Launch &each : launches) each.batch.of->note_fault(each.first, failure);
    } catch (const std::exception &) {
        refuse(true);
        for (const Launch &each : launches) {
            DeviceCalls &of = *each.batch.of;
            of.failure_.fail(
                yoke::cause_of(std::current_exception(), of.members_.self(), each.first.name()));
        }
    }
    for (const Launch &each : launches)
        if (!each.first.is_given()) {
            each.batch.of->failure_.raise_if_failed(each.first.name());
            fail_in(each.first.name(), YOKE_E_CANCELLED,
                    "the engine of the device did not take the call");
        }
    for (const Launch &each : launches)
        each.each_call([](LateCall &call) {
            if (!call.has_work()) call.follow();
        });
}

// Allocates in a turn of the lane, in order with this rank's calls. If the turn or the engine fails, fails the group
// and raises the cause.
void *DeviceCalls::allocate(DeviceEngine &engine, uint64_t bytes, const yoke_comm_signature &said)
{
    CurrentCall current;
    current.signature = said;
    current.signature.group = members_.number;
    EngineFailure found{no_fault(), YOKE_E_TIMEOUT, ""};
    try {
        CommLane *lanes[] = {&engine.lane()};
        LaneTurns turns(lanes, Deadline::after(options_.timeout_s),
                        [this] { return failure_.is_failed(); });
        turns.check_given();
        turns.note_user({current.signature, script_line(), -1});
        return engine.engine()->allocate(bytes);
    } catch (const HeldLane &held) {
        found.text = held.text(members_.number);
        found.fault.kind = YOKE_COMM_FAULT_LATE;
        found.fault.rank = members_.rank;
    } catch (const EngineFailure &failure) {
        found = failure;
    }
    if (failure_.is_failed()) failure_.raise_amid("empty");
    if (found.fault.kind == YOKE_COMM_FAULT_LATE && found.fault.rank != members_.rank)
        fail(found, current);
    failure_.fail_alone(
        "empty", {found.status, no_memory_text("empty", members_.self(), bytes, found.text)});
}

// ---- Where it fails ---------------------------------------------------------------------------------------------

void DeviceCalls::fail(const EngineFailure &failure, const CurrentCall &current)
{
    bool can_agree = true;
    const Cause mine = blame_.cause_of(failure, current, &can_agree);
    if (!can_agree) failure_.fail_with(mine);
    failure_.fail(mine);
}

void DeviceCalls::fail(const EngineFailure &failure, const LateCall &call)
{
    CurrentCall current = call.current();
    if (const auto head = CallWatch::head_of(call.engine().lane());
        head && head->call.signature.group != members_.number)
        current.held_up_by = told_as(head->call);
    fail(failure, current);
}

// Fails the group with this rank as the culprit, if the time for the turn has passed: the other ranks wait for this
// rank. If the group has failed meanwhile with another cause, only logs the thread that held this rank up.
void DeviceCalls::note_held(const LateCall &call, const HeldLane &held, Deadline until)
{
    EngineFailure late{no_fault(), YOKE_E_TIMEOUT, held.text(members_.number)};
    if (failure_.is_failed()) log(LogLevel::kWarn, "%s: %s", call.name(), late.text.c_str());
    if (failure_.is_failed() || !until.has_passed()) return;
    late.fault.kind = YOKE_COMM_FAULT_LATE;
    late.fault.rank = members_.rank;
    fail(late, call.current());
}

void DeviceCalls::note_fault(const LateCall &call, const EngineFailure &failure) noexcept
try {
    EngineFailure told = failure;
    if (told.fault.kind == YOKE_COMM_FAULT_ABORTED && failure_.is_failed()) return;
    if (told.fault.rank >= members_.size()) told.fault.rank = -1;  // rank of another group
    // Another thread is about to report the dead rank, or the failure of an earlier call. Wait for this report.
    const bool is_behind = told.status == YOKE_E_STATE;
    const bool has_died = told.fault.rank < 0 && told.fault.kind == YOKE_COMM_FAULT_DIED;
    if (has_died || is_behind) {
        try {
            for (int i = is_behind ? 0 : 1; i < 2; ++i) failure_.await(call.name());
        } catch (const Error &) {
            return;
        }
        told.fault.kind = YOKE_COMM_FAULT_NONE;
    }
    fail(told, call);
} catch (const std::exception &) {
    failure_.fail(yoke::cause_of(std::current_exception(), members_.self(), call.name()));
}

}  // namespace yoke
