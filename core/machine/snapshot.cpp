#include "core/machine/snapshot.h"

#include "core/base/config.h"
#include "core/machine/network.h"
#include "core/machine/proc.h"
#include "core/machine/sysfs.h"
#include "core/machine/topology.h"
#include "core/machine/vendor.h"

#include <algorithm>

namespace yoke {

namespace {

// Numbers the cards. An instance follows its card, and gets the card's number as parent.
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

// Adds cards lost by the bus, then cards that are on no bus.
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

Machine take_inventory()
{
    return look(configured_root(), "");
}

Machine look_at_card(const std::string &address)
{
    return look(configured_root(), address);
}

}  // namespace yoke
