#include "core/select/select.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/device/availability.h"
#include "core/device/kinds.h"
#include "core/machine/snapshot.h"
#include "core/machine/visibility.h"
#include "core/select/candidates.h"
#include "core/select/lease.h"
#include "core/select/ranks.h"
#include "core/select/told.h"

#include <time.h>
#include <algorithm>
#include <chrono>

namespace yoke {

namespace {

using Clock = std::chrono::steady_clock;
using detail::is_new;

// Returns a hint at the doctor's check for messages; "" if there is no check, as on a machine without a GPU.
std::string doctor_text(const std::string &check)
{
    return check.empty() ? "" : "; the doctor's check '" + check + "' shows the cause: yoke doctor";
}

std::string look_for_check()
{
    try {
        return doctor_check(take_inventory());
    } catch (const Error &error) {
        log(LogLevel::kDebug, "the inventory of the machine cannot be read: %s", error.what());
        return "";
    }
}

// Error if no device is found. The text may name the doctor's check already.
class SelectionError : public Error {
public:
    SelectionError(yoke_status status, const std::string &text, bool names)
        : Error(status, text), names_doctor(names)
    {
    }
    const bool names_doctor;
};

// Skipped kind, with the reason.
struct Skipped {
    std::string text;
    bool names_doctor = false;  // the text does
};

// Logs once for each kind why it is not used: as a warning if a device of this kind was expected.
void tell_skipped(const std::string &kind, const Skipped &skipped)
{
    if (!is_new("kind " + kind + ": " + skipped.text)) return;
    const std::string check =
        *traits_of(kind).vendor && !is_disabled(kind) && !is_forked_child() ? look_for_check() : "";
    const Availability availability = Availability::of(kind);
    const bool expected = availability || availability.is_defect() || !check.empty();
    log(expected ? LogLevel::kWarn : LogLevel::kInfo, "device 'auto' does not use %s: %s%s",
        kind.c_str(), skipped.text.c_str(), skipped.names_doctor ? "" : doctor_text(check).c_str());
}

Device &cpu_device()
{
    return *devices_of(kHostKind).front();
}

// Returns the doctor's hint for a spec's result. If the machine's cards are usable, a constraint that no card meets
// is no fault of the machine.
std::string doctor_text(const Candidates &all)
{
    return has_usable_gpu(all) ? "" : doctor_text(doctor_check(all.machine));
}

// Warns, once for each spec, of a CPU chosen because no GPU fits, unless the spec has fallback=silent.
void tell_fallback(const Spec &spec, const Candidates &all, const std::string &why)
{
    if (spec.fallback == Spec::Fallback::kSilent || !is_new("spec " + spec.text)) return;
    log(LogLevel::kWarn, "device spec '%s' uses the cpu: %s%s", spec.text.c_str(), why.c_str(),
        doctor_text(all).c_str());
}

std::string card_name(const Candidates &all, int card)
{
    const yoke_card_info &info = all.machine.card(card).info;
    const std::string &device = all.situation.states[static_cast<size_t>(card)].device;
    return device + " (" + info.name + (*info.uuid ? ", " : "") + info.uuid + ")";
}

// Raises if a chosen device no longer answers.
void check_present(const Spec &spec, const Candidates &all, int card, Device &device)
{
    uint64_t free_now = 0, total = 0;
    const yoke_status status = device.backend->mem_info
                                   ? device.backend->mem_info(device.handle, &free_now, &total)
                                   : YOKE_OK;
    if (status == YOKE_OK) return;
    const std::string why = take_backend_error(status, "mem_info");
    throw SelectionError(
        status == YOKE_E_DEVICE_LOST ? status : YOKE_E_UNAVAILABLE,
        format(
            "device spec '%s': %s was chosen, but no longer answers: %s; choose again, or run `yoke doctor`",
            spec.text.c_str(), card_name(all, card).c_str(), why.c_str()),
        true);
}

// Leases taken by this call. The destructor returns the leases unless keep() was called.
class Leases {
public:
    ~Leases()
    {
        for (const std::string &key : taken_) return_lease(key);
    }
    // Takes leases in one order everywhere, so if two processes want the same cards, one process gets them all.
    // Returns the key held by another process; "" for none.
    std::string take(std::vector<std::string> keys)
    {
        std::sort(keys.begin(), keys.end());
        taken_.reserve(keys.size());  // every taken lease can be noted
        for (std::string &key : keys) {
            if (!take_lease(key)) return key;
            taken_.push_back(std::move(key));
        }
        return "";
    }
    void keep() { taken_.clear(); }

private:
    std::vector<std::string> taken_;
};

// Marks a lease as held if it could not be taken, whatever a look shows: a shared lock is invisible to a look.
void mark_held(Candidates &all, const std::string &key)
{
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        int32_t &holder = all.situation.states[i].holder;
        if (lease_key(all.machine.cards[i].info) == key && !holder) holder = -1;
    }
}

// Returns the devices of a choice, leased if asked for. Returns none if another process was faster, and notes this in
// `all`.
std::vector<Device *> settle(const Spec &spec, Candidates &all, const Choice &choice)
{
    Leases leases;
    std::vector<Device *> devices;
    std::vector<std::string> keys;
    for (const int card : choice.chosen) {
        if (card == kCpuCandidate) {
            devices.push_back(&cpu_device());
            continue;
        }
        devices.push_back(all.devices[static_cast<size_t>(card)]);
        keys.push_back(lease_key(all.machine.card(card).info));
    }
    if (spec.lease) {
        warn_of_private_leases(all.machine.container);
        if (const std::string taken = leases.take(keys); !taken.empty()) {
            mark_held(all, taken);
            return {};
        }
    }
    for (size_t i = 0; i < devices.size(); ++i)
        if (choice.chosen[i] != kCpuCandidate)
            check_present(spec, all, choice.chosen[i], *devices[i]);
    if (choice.is_fallback) tell_fallback(spec, all, choice.passed_over);
    leases.keep();
    return devices;
}

[[noreturn]] void fail_nothing_fits(const Spec &spec, const Candidates &all, const Choice &choice)
{
    const std::string doctor = doctor_text(all);
    if (is_forked_child() && spec.kind != kHostKind)
        fail(YOKE_E_FORKED, "device spec '%s': %s", spec.text.c_str(), choice.problem.c_str());
    if (spec.wait > 0 && choice.may_change)
        fail(YOKE_E_TIMEOUT, "device spec '%s': timed out; no device fitted within %g s: %s%s",
             spec.text.c_str(), spec.wait, choice.problem.c_str(), doctor.c_str());
    throw SelectionError(
        YOKE_E_UNAVAILABLE,
        format("device spec '%s': %s%s%s", spec.text.c_str(), choice.problem.c_str(),
               spec.wait > 0 ? "; waiting does not help" : "", doctor.c_str()),
        !has_usable_gpu(all));
}

// Pauses between two looks: long enough to cost little, in steps that end with a signal or with the wait.
void pause(Clock::time_point end, int looks)
{
    for (int steps = std::min(looks, 10); steps > 0 && Clock::now() < end; --steps) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
        const timespec step{0, std::clamp<long>(left.count(), 0, 100'000'000)};
        if (nanosleep(&step, nullptr) != 0) return;
    }
}

std::vector<Device *> select(const Spec &spec)
{
    const auto wait = std::chrono::duration<double>(spec.wait);
    const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
    for (int looks = 1;; ++looks) {
        Candidates all = find_candidates(spec, true);
        Choice choice = choose(all.machine, all.situation, spec, spec.count);
        const bool in_time = Clock::now() < end;
        const auto waits = [&] { return in_time && choice.may_change; };
        // Each time another process is faster, one card fewer fits.
        while (!choice.chosen.empty() && (!choice.is_fallback || !waits())) {
            const std::vector<Device *> devices = settle(spec, all, choice);
            if (!devices.empty()) {
                detail::tell_shared(spec, all.situation, choice);
                return devices;
            }
            choice = choose(all.machine, all.situation, spec, spec.count);
        }
        if (!waits()) fail_nothing_fits(spec, all, choice);
        pause(end, looks);
    }
}

// Returns the best device of a kind, or nullptr and the reason. A kind named by the user must serve.
Device *best_of_kind(const Spec &spec, const std::string &kind, Skipped &skipped)
{
    if (const Availability availability = Availability::of(kind); !availability) {
        skipped = {availability.text(), false};
        return nullptr;
    }
    if (kind == kHostKind) return &cpu_device();
    Spec of_kind = spec;
    of_kind.kind = kind;
    try {
        return select(of_kind).front();
    } catch (const SelectionError &error) {
        if (platforms().named) throw;
        skipped = {error.what(), error.names_doctor};
        return nullptr;
    } catch (const Error &error) {
        const bool is_state =
            error.status() == YOKE_E_UNAVAILABLE || error.status() == YOKE_E_DEVICE_LOST;
        if (!is_state || platforms().named) throw;
        skipped = {error.what(), false};
        return nullptr;
    }
}

// Opens the best device of the first kind that works. Raises YOKE_E_UNAVAILABLE with the reasons if no kind works.
Device &open_auto(const Spec &spec)
{
    std::string reasons;
    Skipped skipped;
    for (const std::string &kind : platforms().kinds) {
        if (Device *device = best_of_kind(spec, kind, skipped)) return *device;
        tell_skipped(kind, skipped);
        add_part(reasons, kind + ": " + skipped.text, "; ");
    }
    fail(YOKE_E_UNAVAILABLE, "device spec 'auto': no device can be used: %s", reasons.c_str());
}

Device &open_indexed(const Spec &spec)
{
    const std::vector<Device *> &devices = devices_of(spec.kind);
    if (static_cast<size_t>(spec.index) >= devices.size())
        fail(YOKE_E_UNAVAILABLE, "device spec '%s': there is no such device; the last one is %s",
             spec.text.c_str(), devices.back()->name.c_str());
    return *devices[static_cast<size_t>(spec.index)];
}

}  // namespace

Device &open_device(std::string_view text)
{
    warn_of_late_changes();
    warn_of_late_cuda_variables();
    const Spec spec = parse_spec_of_one(text);
    switch (spec.form) {
        case Spec::Form::kKind:
            return *devices_of(spec.kind).front();
        case Spec::Form::kIndex:
            return open_indexed(spec);
        default:
            break;
    }
    Availability::require_named_for_choice();
    const bool is_plain = spec.form == Spec::Form::kAuto && !spec.is_constrained;
    return is_plain ? open_auto(spec) : *select(spec).front();
}

std::vector<Device *> select_devices(std::string_view text, int32_t count)
{
    warn_of_late_changes();
    warn_of_late_cuda_variables();
    Spec spec = parse_spec(text);
    if (count > 0 && spec.count > 0 && count != spec.count)
        fail(
            YOKE_E_VALUE,
            "device spec '%s' has n=%d, but %d devices were requested; give only one of the two numbers",
            spec.text.c_str(), spec.count, count);
    spec.count = std::max(count, spec.count);
    Availability::require_named_for_choice();
    const bool is_plain = spec.form == Spec::Form::kAuto && !spec.is_constrained;
    if (is_plain && spec.count <= 1) return {&open_auto(spec)};
    // open_device() opens a kind's first device, so a kind's name means the same here.
    if (spec.form == Spec::Form::kKind && spec.count <= 1) return {devices_of(spec.kind).front()};
    return select(spec);
}

}  // namespace yoke
