#include "core/machine/inventory.h"

#include "core/base/config.h"
#include "core/machine/network.h"
#include "core/machine/proc.h"
#include "core/machine/sysfs.h"
#include "core/machine/topology.h"
#include "core/machine/vendor.h"

#include <strings.h>
#include <algorithm>
#include <cmath>

namespace yoke {

namespace {

// Cases do not count.
bool is_equal(std::string_view a, std::string_view b)
{
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// An instance stands behind the card it is a part of.
void number_cards(Machine &machine)
{
    int32_t whole = -1;
    for (size_t i = 0; i < machine.cards.size(); ++i) {
        yoke_card_info &info = machine.cards[i].info;
        info.index = static_cast<int32_t>(i);
        if (info.kind == YOKE_CARD_MIG)
            info.parent = whole;
        else
            whole = info.index;
    }
}

// What stands on no bus, and what the bus lost.
void add_cards(const Root &root, Machine &machine)
{
    for (const Vendor *each : vendors()) each->add_vanished_cards(root, machine);
    std::sort(machine.cards.begin(), machine.cards.end(), [](const Card &a, const Card &b) {
        return std::string_view(a.info.pci) < std::string_view(b.info.pci);
    });
    for (const Vendor *each : vendors()) each->add_integrated_cards(root, machine);
}

void finish(const Root &root, Machine &machine)
{
    for (const Vendor *each : vendors()) each->complete_cards(root, machine);
    read_processes(root, machine);
    number_cards(machine);
    reject_cards(root, machine);
    for (const Vendor *each : vendors()) each->number_devices(machine);
}

Machine look(const Root &root, const std::string &only)
{
    Machine machine;
    for (const Vendor *each : vendors()) each->read_driver(root, machine);
    machine.cards = read_pci_cards(root, only);
    if (only.empty()) {
        read_place(root, machine);
        add_cards(root, machine);
    }
    read_enclosures(root, machine.cards);
    machine.docks = unauthorized_docks(root);
    for (const Vendor *each : vendors()) each->ask_driver(root, machine, only.empty());
    finish(root, machine);
    if (!only.empty()) return machine;
    machine.networks = read_networks(root);
    if (machine.links.size() != machine.cards.size() * machine.cards.size()) link_by_bus(machine);
    return machine;
}

}  // namespace

Card unknown_card()
{
    Card card{};
    yoke_card_info &info = card.info;
    info.struct_size = sizeof info;
    for (int32_t *field : {&info.index,
                           &info.kind,
                           &info.parent,
                           &info.pci_id,
                           &info.minor,
                           &info.nvml_index,
                           &info.visible,
                           &info.present,
                           &info.asleep,
                           &info.cc_major,
                           &info.cc_minor,
                           &info.multiprocessors,
                           &info.numa_node,
                           &info.process_count,
                           &info.hidden_processes,
                           &info.ecc,
                           &info.remap_pending,
                           &info.remap_failed,
                           &info.mig,
                           &info.mig_instances,
                           &info.compute_mode,
                           &info.persistence,
                           &info.mps,
                           &info.vgpu,
                           &info.vgpu_licensed,
                           &info.link_generation,
                           &info.link_generation_max,
                           &info.link_width,
                           &info.link_width_max,
                           &info.nvlinks,
                           &info.nvlinks_active,
                           &info.is_egpu,
                           &info.display})
        *field = -1;
    for (int64_t *field :
         {&info.memory_total, &info.memory_free, &info.memory_used, &info.memory_reserved,
          &info.hidden_memory, &info.ecc_uncorrected, &info.ecc_corrected, &info.link_replays})
        *field = -1;
    for (double *field :
         {&info.utilization, &info.memory_utilization, &info.sm_clock, &info.sm_clock_max,
          &info.memory_clock, &info.memory_clock_max, &info.power, &info.power_limit,
          &info.power_limit_max, &info.temperature, &info.temperature_limit, &info.enclosure_rate})
        *field = NAN;
    return card;
}

void reject(Card &card, const Rejection &rejection)
{
    card.rejected = rejection.reason;
    put(card.info.reason, rejection.text);
}

std::string_view bare_uuid(std::string_view uuid)
{
    const std::string_view prefix = uuid.substr(0, 4);
    const bool has_one = is_equal(prefix, "gpu-") || is_equal(prefix, "mig-");
    return has_one ? uuid.substr(4) : uuid;
}

bool is_same_uuid(std::string_view a, std::string_view b)
{
    return is_equal(bare_uuid(a), bare_uuid(b));
}

Machine take_inventory()
{
    return look(configured_root(), "");
}

Machine look_at_card(const std::string &address)
{
    return look(configured_root(), address);
}

std::string under_sysroot(std::string_view path)
{
    return configured_root().path(path);
}

}  // namespace yoke
