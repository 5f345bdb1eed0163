#include "core/machine/inventory.h"

#include "core/base/config.h"
#include "core/machine/network.h"
#include "core/machine/nvml.h"
#include "core/machine/proc.h"
#include "core/machine/reasons.h"
#include "core/machine/sysfs.h"
#include "core/machine/topology.h"
#include "core/machine/visibility.h"

#include <strings.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace yoke {

namespace {

// Cases do not count.
bool is_equal(std::string_view a, std::string_view b)
{
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

void mark_visible(Machine &machine)
{
    const CudaVariables variables = cuda_variables();
    const Visible visible = visible_cards(machine, variables.visible, variables.order);
    int32_t number = 0;
    for (const int each : visible.cards) {
        Card &card = machine.cards[static_cast<size_t>(each)];
        // The CUDA module passes over a card that it has no code for, and the next one has its number.
        if (lacks_code(card.rejected)) continue;
        card.info.visible = number++;
    }
    machine.visible_problem = visible.problem;
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

// A daemon that listens serves every card of its machine that a client asks for.
void mark_mps(const Root &root, Machine &machine)
{
    const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
    const std::string folder = given && *given ? given : "/tmp/nvidia-mps";
    const int64_t pid = root.folder(folder).number("nvidia-cuda-mps-control.pid");
    if (pid <= 0 || !root.has("/proc/" + std::to_string(pid))) return;
    for (Card &card : machine.cards)
        if (std::string_view(card.info.driver) == "nvidia") card.info.mps = 1;
}

// What stands on no bus, and what the bus lost.
void add_cards(const Root &root, Machine &machine)
{
    add_vanished_cards(root, machine);
    std::sort(machine.cards.begin(), machine.cards.end(), [](const Card &a, const Card &b) {
        return std::string_view(a.info.pci) < std::string_view(b.info.pci);
    });
    add_integrated_card(root, machine);
}

// In a container the bus shows all cards of the host. Those of the container are the ones that NVML tells of; where it is
// silent, the ones that the module's own list has, where that leaves some out, else the ones with a device file.
void mark_granted(const Root &root, Machine &machine)
{
    if (machine.container.empty()) return;
    const auto has_file = [&](const Card &card) {
        return card.info.minor >= 0 && root.has("/dev/nvidia" + std::to_string(card.info.minor));
    };
    bool is_filtered = false, any_file = false;
    for (const Card &card : machine.cards) {
        if (std::string_view(card.info.driver) != "nvidia") continue;
        is_filtered |= card.info.minor < 0;
        any_file |= has_file(card);
    }
    for (Card &card : machine.cards) {
        const yoke_card_info &info = card.info;
        if (std::string_view(info.driver) != "nvidia" || info.kind == YOKE_CARD_MIG) continue;
        if (machine.nvml.answered())
            card.granted = info.nvml_index >= 0 || info.asleep == 1 || info.present == 0 ||
                           card.rejected != Reason::kNone;
        else if (is_filtered)
            card.granted = info.minor >= 0;
        else if (any_file)
            card.granted = has_file(card);
    }
}

void finish(const Root &root, Machine &machine)
{
    for (Card &card : machine.cards)
        if (!card.info.uuid[0]) read_module_card(root, card);
    mark_granted(root, machine);
    read_processes(root, machine);
    mark_mps(root, machine);
    number_cards(machine);
    explain_cards(root, machine);
    mark_visible(machine);
}

Machine look(const Root &root, const std::string &only)
{
    Machine machine;
    read_driver(root, machine);
    machine.cards = read_pci_cards(root, only);
    if (only.empty()) {
        read_place(root, machine);
        add_cards(root, machine);
    }
    read_enclosures(root, machine.cards);
    machine.docks = unauthorized_docks(root);
    ask_nvml(root, machine, only.empty());
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
