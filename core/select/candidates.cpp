#include "core/select/candidates.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/log.h"
#include "core/device/availability.h"
#include "core/device/free_memory.h"
#include "core/device/kinds.h"
#include "core/machine/snapshot.h"
#include "core/machine/vendor.h"
#include "core/machine/visibility.h"
#include "core/select/lease.h"
#include "core/select/ranks.h"

#include <unistd.h>
#include <algorithm>
#include <optional>

namespace yoke {

namespace {

bool is_card_of(const Card &card, const Device &device)
{
    const yoke_card_info &info = card.info;
    if (*info.uuid && *device.info.uuid) return is_same_uuid(info.uuid, device.info.uuid);
    // The instances of a card share the card's address.
    return *info.pci && info.kind != YOKE_CARD_MIG &&
           normal_pci(device.info.pci) == normal_pci(info.pci);
}

// Returns whether an opened device refutes a card's rejection, since an open makes no context. The rejection may come
// from the bus alone, if no library knows the card. Any rejection is also refuted if this process has memory on the
// card. Else a mode, a fault or a hang stays a reason.
bool is_refuted(const Card &card, const Device &device)
{
    const yoke_card_info &info = card.info;
    if (info.present == 0) return false;
    if (is_refuted_by_opening(card.rejected)) return true;
    const bool by_bus = info.nvml_index < 0 && !is_held_by_own_driver(info);
    return device.memory.load() || (info.kind == YOKE_CARD_INTEGRATED && !*info.pci) || by_bus;
}

// Fills in unknown facts of a card from its backend, and ends the card's rejection if the opened device refutes it.
void complete(Card &card, Device &device)
{
    yoke_card_info &info = card.info;
    const yoke_backend_device_info &told = device.info;
    if (!*info.name) put(info.name, told.name);
    if (!*info.uuid) put(info.uuid, told.uuid);
    if (!*info.pci) put(info.pci, normal_pci(told.pci));
    if (info.cc_major < 0 && told.cc_major > 0)
        info.cc_major = told.cc_major, info.cc_minor = told.cc_minor;
    if (info.multiprocessors < 0) info.multiprocessors = told.multiprocessors;
    if (info.memory_total < 0) info.memory_total = static_cast<int64_t>(told.total_memory);
    info.visible = device.index;
    if (is_refuted(card, device)) reject(card, {});
}

// Asks the backend for the free memory, if unknown. The question makes a context that stays, so a card is asked only
// if the spec needs the answer, or if the card is in use anyway. If the backend fails, its error is a reason to
// reject the card.
void ask_free_memory(Card &card, CardState &state, Device &device, bool needed)
{
    yoke_card_info &info = card.info;
    if (info.memory_free >= 0 || card.rejected != Reason::kNone || device.disabled.load()) return;
    if (!needed && !device.memory.load()) return;
    FreeMemory free_memory;
    const yoke_status status = free_memory_on(device, &free_memory);
    if (status == YOKE_OK)
        info.memory_free = static_cast<int64_t>(free_memory.free);
    else
        state.rejection = {Reason::kNoMemoryTold, "the free memory cannot be read: " +
                                                      take_backend_error(status, "mem_info")};
}

// Adds a card unknown to the inventory. The card's links are unknown too.
void add_card(Candidates &all, Device &device)
{
    Machine &machine = all.machine;
    const size_t count = machine.cards.size();
    std::vector<yoke_card_link> links((count + 1) * (count + 1));
    for (size_t a = 0; a <= count; ++a)
        for (size_t b = 0; b <= count; ++b) {
            yoke_card_link &link = links[a * (count + 1) + b];
            if (a < count && b < count) {
                link = machine.links[a * count + b];
                continue;
            }
            link = {};
            link.struct_size = sizeof link;
            link.path = a == b ? YOKE_PATH_SELF : 1000;  // farther than any named path
            link.peer = a == b ? 1 : -1;
            put(link.label, a == b ? "X" : "");
        }
    machine.links = std::move(links);
    Card card = unknown_card();
    card.info.index = static_cast<int32_t>(count);
    card.info.kind = YOKE_CARD_GPU;
    card.info.present = 1;
    put(card.info.vendor, traits_of(device.kind()).vendor);
    machine.cards.push_back(card);
    all.situation.states.emplace_back();
    all.devices.push_back(nullptr);
}

// Returns why CUDA would give a card no number.
Rejection hidden(const Machine &machine, const Card &card)
{
    const yoke_card_info &info = card.info;
    if (!card.granted)
        return {
            Reason::kHostsCard,
            "the card belongs to the host and was not given to this container; start the container with --gpus or NVIDIA_VISIBLE_DEVICES"};
    const std::string &why = machine.visible_problem;
    const bool shows_instance = std::any_of(
        machine.cards.begin(), machine.cards.end(),
        [](const Card &each) { return each.info.kind == YOKE_CARD_MIG && each.info.visible >= 0; });
    if (cuda_variables().visible)
        return {Reason::kHidden, "CUDA_VISIBLE_DEVICES hides it" + (why.empty() ? "" : ": " + why)};
    if (shows_instance)
        return {Reason::kBesideInstance,
                std::string("CUDA shows a process only one MIG instance, here ") +
                    (info.kind == YOKE_CARD_MIG ? "another instance" : "an instance") +
                    (*info.uuid ? format("; CUDA_VISIBLE_DEVICES=%s chooses this one", info.uuid)
                                : "")};
    return {Reason::kUnseen,
            "the driver does not show the card to this process; run `yoke doctor`"};
}

// Returns whether the caller only looks, and can still choose by the variable of a future process which cards CUDA
// shows.
bool is_to_choose(const Spec &spec, bool open)
{
    const bool any_form = spec.form == Spec::Form::kAuto || spec.form == Spec::Form::kUuid ||
                          spec.form == Spec::Form::kPci;
    const std::vector<Device *> opened = opened_devices();
    return !open && any_form && !cuda_variables().visible &&
           std::none_of(opened.begin(), opened.end(),
                        [](const Device *device) { return *traits_of(device->kind()).vendor; });
}

// Offers cards beside an instance to a caller that only looks. CUDA shows a process no card beside an instance, so
// without the variable, most cards of such a machine have no number. Each card can be the first device of a process
// started with this card in the variable.
void offer_beside_instances(Candidates &all, bool several)
{
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        const Card &card = all.machine.cards[i];
        const yoke_card_info &info = card.info;
        CardState &state = all.situation.states[i];
        const bool is_instance = info.kind == YOKE_CARD_MIG;
        if (!is_of_served_vendor(info) || info.present == 0 || !card.granted || !*info.uuid ||
            (info.mig == 1 && !is_instance))
            continue;
        if (several && is_instance) {
            state.rejection = {Reason::kBesideInstance, "a process can use only one MIG instance"};
        } else if (info.visible < 0) {
            state.device = std::string(kind_serving(info.vendor)) + ":0";
            state.note = hidden(all.machine, card).text;
            state.rejection = {};
        }
    }
}

// Rejects the cards without a number among CUDA's devices. If an instance is visible and the caller only looks,
// offers the cards beside it.
void reject_hidden(Candidates &all, const Spec &spec, bool open)
{
    bool shows_instance = false;
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        const Card &card = all.machine.cards[i];
        shows_instance |= card.info.kind == YOKE_CARD_MIG && card.info.visible >= 0;
        if (!is_of_served_vendor(card.info) || card.info.visible >= 0) continue;
        all.situation.states[i].rejection = hidden(all.machine, card);
    }
    if (shows_instance && is_to_choose(spec, open)) offer_beside_instances(all, spec.count > 1);
}

void number_cards(Candidates &all)
{
    const size_t count = all.machine.cards.size();
    all.situation.states.resize(count);
    all.devices.resize(count, nullptr);
    for (size_t i = 0; i < count; ++i) {
        const yoke_card_info &info = all.machine.cards[i].info;
        if (is_of_served_vendor(info) && info.visible >= 0)
            all.situation.states[i].device =
                std::string(kind_serving(info.vendor)) + ":" + std::to_string(info.visible);
    }
}

// Rejects every card of an unusable kind.
void reject_kind(Candidates &all, const std::string &kind, const Availability &availability)
{
    for (size_t i = 0; i < all.devices.size(); ++i) {
        CardState &state = all.situation.states[i];
        if (!all.devices[i] && kind_of(all.machine.cards[i], state) == kind)
            state.rejection = {Reason::kKindUnavailable, availability.text()};
    }
    if (*traits_of(kind).vendor) all.situation.gpu_problem = availability.text();
}

void join_kind(Candidates &all, const std::string &kind, bool open, bool needs_free)
{
    const Availability availability = open ? Availability::of(kind) : Availability::known(kind);
    if (!availability) return reject_kind(all, kind, availability);
    const std::vector<Device *> devices = open ? devices_of(kind) : opened_devices_of(kind);
    if (devices.empty()) return;
    detail::join_devices(devices, all);
    for (size_t i = 0; i < all.devices.size(); ++i)
        if (all.devices[i] && all.devices[i]->kind() == kind)
            ask_free_memory(all.machine.cards[i], all.situation.states[i], *all.devices[i],
                            needs_free);
    // CUDA did not list these cards, so the cards get no name such as "cuda:0".
    for (size_t i = 0; i < all.devices.size(); ++i) {
        CardState &state = all.situation.states[i];
        const Card &card = all.machine.cards[i];
        if (all.devices[i] || kind_of(card, state) != kind) continue;
        if (card.info.visible >= 0)
            state.rejection = {
                Reason::kUnseen,
                "CUDA does not show the card, although no variable hides it; run `yoke doctor`"};
        state.device.clear();
    }
}

void look_up_leases(Candidates &all, const Spec &spec)
{
    const bool must = spec.lease || (spec.exclude & Spec::kLeased) != 0;
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        const std::string key = lease_key(all.machine.cards[i].info);
        if (key.empty()) continue;
        try {
            const int32_t holder = lease_holder(key);
            all.situation.states[i].holder = holder == getpid() ? 0 : holder;
        } catch (const Error &error) {
            if (must) throw;
            log(LogLevel::kDebug, "leases cannot be read: %s", error.what());
            return;
        }
    }
}

// Returns whether a card of a kind can be used, as far as known.
bool serves(const Candidates &all, const std::string &kind)
{
    for (size_t i = 0; i < all.devices.size(); ++i) {
        const Card &card = all.machine.cards[i];
        const CardState &state = all.situation.states[i];
        if (all.devices[i] && all.devices[i]->kind() == kind) return true;
        if (kind_of(card, state) == kind && !state.device.empty() && !state.rejection &&
            card.rejected == Reason::kNone && card.info.present != 0)
            return true;
    }
    return false;
}

// Returns why a kind in YOKE_PLATFORMS serves no device, if known. For CUDA's cards, the inventory tells without
// opening CUDA.
std::optional<std::string> why_it_fails(const Candidates &all, const std::string &kind)
{
    if (const Availability known = Availability::known(kind); !known) return known.text();
    if (!*traits_of(kind).vendor) return std::nullopt;
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        const Card &card = all.machine.cards[i];
        const CardState &state = all.situation.states[i];
        if (kind_of(card, state) != kind) continue;
        if (card.rejected != Reason::kNone) return card.info.reason;
        if (state.rejection) return state.rejection.text;
    }
    return "this machine shows no GPU for this kind";
}

// Returns the problem of a named platform. A platform named by the user must work; no other kind replaces it, not
// even the CPU.
std::optional<std::string> platform_problem(const Candidates &all)
{
    const Platforms chosen = platforms();
    if (!chosen.named) return std::nullopt;
    for (const std::string &kind : chosen.kinds) {
        if (kind == kHostKind || is_disabled(kind) || serves(all, kind)) continue;
        if (const auto why = why_it_fails(all, kind))
            return format("YOKE_PLATFORMS names '%s', which cannot be used: %s", kind.c_str(),
                          why->c_str());
    }
    return std::nullopt;
}

void look_at_cpu(Candidates &all)
{
    Situation &situation = all.situation;
    if (const Availability host = Availability::of(kHostKind); !host)
        situation.cpu_problem = host.text();
    else
        situation.cpu_problem = platform_problem(all);
    situation.cpu_first = platforms().kinds.front() == kHostKind;
    if (situation.cpu_problem) return;
    for (Device *cpu : opened_devices_of(kHostKind)) {
        FreeMemory free_memory;
        if (free_memory_on(*cpu, &free_memory) != YOKE_OK) continue;
        situation.cpu_free = static_cast<int64_t>(free_memory.free);
        situation.cpu_total = static_cast<int64_t>(free_memory.total);
    }
}

}  // namespace

void detail::join_devices(const std::vector<Device *> &devices, Candidates &all)
{
    for (Device *device : devices) {
        size_t i = 0;
        while (i < all.machine.cards.size() &&
               (all.devices[i] || !is_card_of(all.machine.cards[i], *device)))
            ++i;
        if (i == all.machine.cards.size()) add_card(all, *device);
        complete(all.machine.cards[i], *device);
        all.situation.states[i].device = device->name;
        all.situation.states[i].rejection = {};  // CUDA shows the card, whatever the variables say
        all.devices[i] = device;
    }
}

Candidates find_candidates(const Spec &spec, bool open)
{
    Candidates all;
    all.machine = take_inventory();
    number_cards(all);
    reject_hidden(all, spec, open);
    const bool opens = open && spec.kind != kHostKind;
    const bool needs_free = opens && spec.min_free >= 0;
    for (const std::string &kind : known_kinds())
        if (kind != kHostKind) join_kind(all, kind, opens, needs_free);
    look_up_leases(all, spec);
    detail::look_at_ranks(spec, all);
    look_at_cpu(all);
    return all;
}

std::string lease_key(const yoke_card_info &info)
{
    return *info.uuid ? info.uuid : info.pci;
}

std::string lease_key(const Device &device)
{
    if (*device.info.uuid) return device.info.uuid;
    return *device.info.pci ? normal_pci(device.info.pci) : device.name;
}

bool has_usable_gpu(const Candidates &all)
{
    for (const std::string &kind : known_kinds())
        if (*traits_of(kind).vendor && serves(all, kind)) return true;
    return false;
}

std::string doctor_check(const Machine &machine)
{
    bool is_there = false, is_sound = false, is_hidden = true;
    // First reason against a card held by its vendor's driver, and against any other card.
    Reason ours = Reason::kNone, others = Reason::kNone;
    for (const Card &card : machine.cards) {
        const yoke_card_info &info = card.info;
        if (!is_of_served_vendor(info)) continue;
        is_there = true;
        Reason &first = is_held_by_own_driver(info) ? ours : others;
        if (first == Reason::kNone) first = card.rejected;
        if (card.rejected != Reason::kNone) continue;
        is_sound = true;
        is_hidden &= info.visible < 0;
    }
    if (!is_there) return "";
    // A card held by another driver does not explain the problems of the vendor's driver.
    const Reason worst = ours == Reason::kNone ? others : ours;
    if (!is_sound && *check_of(worst)) return check_of(worst);
    if (const Reason failed = reason_of(machine.nvml.failure); failed != Reason::kNone)
        return check_of(failed);
    if (is_hidden && cuda_variables().visible) return "all-hidden";
    return "cuda-library";
}

}  // namespace yoke
