// NVML's facts about a card. A question may have no answer (code 3): its field then stays unknown.
#include "core/machine/nvidia_card.h"
#include "core/machine/nvml_session.h"

#include "core/base/error.h"
#include "core/machine/sysfs.h"

#include <algorithm>
#include <cmath>

namespace yoke::nvml {

namespace {

// Returns the cores of a multiprocessor by compute capability. NVML reports the cores of a card, but not its
// multiprocessors.
int32_t cores_of_multiprocessor(int32_t major, int32_t minor)
{
    switch (major) {
        case 3:
            return 192;
        case 5:
            return 128;
        case 6:
            return minor == 0 ? 64 : 128;
        case 7:
            return 64;
        case 8:
            return minor == 0 ? 64 : 128;
        default:
            return 128;
    }
}

// Returns the answer to a question for an unsigned number; -1 without an answer.
template <class... Kind>
int32_t number(Asker &asker, const Symbol<Handle, Kind..., unsigned *> &symbol, Kind... kind)
{
    unsigned value = 0;
    return asker.ask(symbol, kind..., &value) ? static_cast<int32_t>(value) : -1;
}

double scaled(int32_t value, double unit)
{
    return value < 0 ? NAN : value * unit;
}

int32_t flag(Asker &asker, const Symbol<Handle, int *> &symbol)
{
    int value = 0;
    return asker.ask(symbol, &value) ? value != 0 : -1;
}

// Returns the number of a card without a reported number: the count of cards in the order of addresses.
int32_t number_by_place(const Session &session, size_t card)
{
    int32_t number = 0;
    for (size_t i = 0; i < card; ++i) {
        const yoke_card_info &other = session.machine.cards[i].info;
        const bool counts = session.known[i].handle || other.asleep == 1;
        number += counts && other.kind != YOKE_CARD_MIG && is_nvidia(other);
    }
    return number;
}

void ask_identity(Asker &asker)
{
    const Api &api = asker.api();
    char name[kNameSize] = "", uuid[kUuidSize] = "";
    if (asker.ask(api.name, name, kNameSize)) put(asker.info().name, name);
    if (asker.ask(api.uuid, uuid, kUuidSize)) put(asker.info().uuid, uuid);
    asker.info().minor = number(asker, api.minor_number);
    asker.info().nvml_index = number(asker, api.index);
    if (asker.info().nvml_index < 0)
        asker.info().nvml_index = number_by_place(asker.session(), asker.index());
    int major = 0, minor = 0;
    if (asker.ask(api.compute_capability, &major, &minor)) {
        asker.info().cc_major = major;
        asker.info().cc_minor = minor;
    }
}

void ask_measures(Asker &asker)
{
    const Api &api = asker.api();
    Utilization use{};
    if (asker.ask(api.utilization, &use)) {
        asker.info().utilization = use.gpu / 100.0;
        asker.info().memory_utilization = use.memory / 100.0;
    }
    asker.info().sm_clock = scaled(number(asker, api.clock, kClockSm), 1e6);
    asker.info().memory_clock = scaled(number(asker, api.clock, kClockMemory), 1e6);
    asker.info().sm_clock_max = scaled(number(asker, api.clock_max, kClockSm), 1e6);
    asker.info().memory_clock_max = scaled(number(asker, api.clock_max, kClockMemory), 1e6);
    asker.info().power = scaled(number(asker, api.power), 1e-3);
    asker.info().power_limit = scaled(number(asker, api.power_limit), 1e-3);
    unsigned least = 0, most = 0;
    if (asker.ask(api.power_limits, &least, &most)) asker.info().power_limit_max = most * 1e-3;
    unsigned long long throttle = 0;
    if (asker.ask(api.throttle, &throttle)) asker.info().throttle = throttle;
}

void ask_temperature(Asker &asker)
{
    const Api &api = asker.api();
    asker.info().temperature = scaled(number(asker, api.temperature, kSensorGpu), 1);
    if (asker.info().temperature != asker.info().temperature) {
        Temperature measured{version_of(sizeof measured, 1), kSensorGpu, 0};
        if (asker.ask(api.temperature_v1, &measured)) asker.info().temperature = measured.degrees;
    }
    asker.info().temperature_limit =
        scaled(number(asker, api.temperature_limit, kThresholdSlowdown), 1);
}

void ask_health(Asker &asker)
{
    const Api &api = asker.api();
    int now = 0, pending = 0;
    if (asker.ask(api.ecc_mode, &now, &pending)) asker.info().ecc = now;
    unsigned long long errors = 0;
    if (asker.info().ecc == 1) {
        if (asker.ask(api.ecc_errors, kEccUncorrected, kEccVolatile, &errors))
            asker.info().ecc_uncorrected = static_cast<int64_t>(errors);
        if (asker.ask(api.ecc_errors, kEccCorrected, kEccVolatile, &errors))
            asker.info().ecc_corrected = static_cast<int64_t>(errors);
    }
    unsigned corrected = 0, uncorrected = 0, waiting = 0, failed = 0;
    if (asker.ask(api.remapped_rows, &corrected, &uncorrected, &waiting, &failed)) {
        asker.info().remap_pending = waiting != 0;
        asker.info().remap_failed = failed != 0;
        return;
    }
    // Before Ampere pages are retired in place of rows remapped, which too takes a reset.
    int due = 0;
    if (asker.ask(api.retired_pending, &due)) asker.info().remap_pending = due != 0;
}

void ask_licence(Asker &asker)
{
    const Api &api = asker.api();
    int mode = 0;
    if (!asker.ask(api.virtualization, &mode)) return;
    asker.info().vgpu = mode == kVirtualizationGuest;
    if (asker.info().vgpu != 1) return;
    LicensableFeatures all{};
    if (!asker.ask(api.licences, &all)) return;
    asker.info().vgpu_licensed = 0;
    for (unsigned i = 0; i < all.count && i < 3; ++i)
        if (all.features[i].licensed) asker.info().vgpu_licensed = 1;
}

void ask_modes(Asker &asker)
{
    const Api &api = asker.api();
    int mode = 0;
    // 1 was "one thread": CUDA has long treated this mode as exclusive.
    if (asker.ask(api.compute_mode, &mode))
        asker.info().compute_mode = mode == 1 ? YOKE_COMPUTE_EXCLUSIVE : mode;
    asker.info().persistence = flag(asker, api.persistence);
    const int32_t attached = flag(asker, api.display_mode),
                  active = flag(asker, api.display_active);
    if (attached == 1 || active == 1)
        asker.info().display = 1;
    else if (asker.info().display < 0)
        asker.info().display = std::max(attached, active);
    unsigned now = 0, pending = 0;
    const int code = asker.code(api.mig_mode, &now, &pending);
    if (code == kSuccess)
        asker.info().mig = now != 0;
    else if (code == kNotSupported)
        asker.info().mig = 0;  // not partitionable
}

void take_known(int32_t &field, int32_t value)
{
    if (value >= 0) field = value;
}

void ask_link(Asker &asker)
{
    const Api &api = asker.api();
    take_known(asker.info().link_generation, number(asker, api.link_generation));
    take_known(asker.info().link_generation_max, number(asker, api.link_generation_max));
    take_known(asker.info().link_width, number(asker, api.link_width));
    take_known(asker.info().link_width_max, number(asker, api.link_width_max));
    unsigned replays = 0;
    if (asker.ask(api.link_replays, &replays)) asker.info().link_replays = replays;
}

void ask_nvlinks(Asker &asker)
{
    int32_t there = 0, active = 0;
    uint64_t mask = 0;
    for (unsigned link = 0; link < kMaxLinks; ++link) {
        int state = 0;
        const int code = asker.code(asker.api().nvlink_state, link, &state);
        if (code == kNoFunction || code == kLost) return;
        // A missing link may be between fitted links. A card without the first link has no links.
        if (code == kNotSupported && link > 0) continue;
        if (code != kSuccess) break;
        ++there;
        active += state == 1;
        mask |= uint64_t{state == 1} << link;
    }
    asker.info().nvlinks = there;
    asker.info().nvlinks_active = active;
    asker.session().known[asker.index()].active_nvlinks = mask;
}

}  // namespace

void ask_memory(Asker &asker)
{
    const Api &api = asker.api();
    MemoryV2 exact{};
    exact.version = version_of(sizeof exact, 2);
    yoke_card_info &info = asker.info();
    if (asker.ask(api.memory_v2, &exact) && exact.total > 0) {
        info.memory_total = static_cast<int64_t>(exact.total);
        info.memory_free = static_cast<int64_t>(exact.free);
        info.memory_used = static_cast<int64_t>(exact.used);
        info.memory_reserved = static_cast<int64_t>(exact.reserved);
        return;
    }
    // Drivers before 510, and drivers that refuse the struct's version, count their own memory as used.
    Memory memory{};
    const int code = asker.code(api.memory, &memory);
    // A GPU within a processor has no memory of its own. The host's is put in once the library is left.
    const bool has_none = code == kNotSupported || (code == kSuccess && memory.total == 0);
    if (has_none && info.kind == YOKE_CARD_GPU) info.kind = YOKE_CARD_INTEGRATED;
    if (code != kSuccess || has_none) return;
    info.memory_total = static_cast<int64_t>(memory.total);
    info.memory_free = static_cast<int64_t>(memory.free);
    info.memory_used = static_cast<int64_t>(memory.used);
}

void ask_multiprocessors(Asker &asker)
{
    Attributes attributes{};
    if (asker.ask(asker.api().attributes, &attributes) && attributes.multiprocessors) {
        asker.info().multiprocessors = static_cast<int32_t>(attributes.multiprocessors);
        return;
    }
    unsigned cores = 0;
    const yoke_card_info &info = asker.info();
    if (info.cc_major > 0 && asker.ask(asker.api().cores, &cores) && cores)
        asker.info().multiprocessors =
            static_cast<int32_t>(cores) / cores_of_multiprocessor(info.cc_major, info.cc_minor);
}

void ask_card(Session &session, size_t card)
{
    Asker asker(session, card);
    asker.info().present = 1;
    ask_identity(asker);
    ask_memory(asker);
    ask_multiprocessors(asker);
    ask_modes(asker);
    ask_measures(asker);
    ask_temperature(asker);
    ask_health(asker);
    ask_licence(asker);
    ask_link(asker);
    ask_nvlinks(asker);
    ask_processes(asker);
    if (asker.needs_reset())
        reject(
            asker.card(),
            {Reason::kNeedsReset,
             format(
                 "the driver asks for a reset of the card: stop its programs, then nvidia-smi --gpu-reset -i %s; where that fails, restart the machine",
                 asker.info().uuid)});
}

}  // namespace yoke::nvml
