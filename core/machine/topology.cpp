#include "core/machine/topology.h"

#include "core/base/error.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr const char *kLegend =
    "\nX = itself, NV# = # NVLinks, PIX = one PCIe switch, PXB = several PCIe switches, PHB = a host bridge,\nNODE = host bridges of one NUMA node, SYS = between NUMA nodes\n";

// Returns the bus of the host bridge at the top, "0000:60", the same for all root ports of a host bridge.
std::string host_bus(const std::vector<std::string> &bridges, const std::string &address)
{
    const std::string &top = bridges.empty() ? address : bridges.back();
    return top.substr(0, top.rfind(':'));
}

// Returns "0000:65:00" of "0000:65:00.0", the same for all functions of a slot.
std::string slot_of(const std::string &address)
{
    return address.substr(0, address.rfind('.'));
}

std::string column(const std::string &text, size_t width)
{
    return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

const char *network_label(const Machine &machine, size_t card, size_t network)
{
    const Card &a = machine.cards[card];
    const NetworkCard &b = machine.networks[network];
    return path_label(path_between(a.bridges, a.info.pci, a.info.numa_node, b.bridges, b.info.pci,
                                   b.info.numa_node));
}

std::string card_title(const Machine &machine, size_t card)
{
    const yoke_card_info &info = machine.cards[card].info;
    return format(info.kind == YOKE_CARD_MIG ? "MIG%d" : "GPU%d", static_cast<int>(card));
}

std::string network_title(const Machine &machine, size_t network)
{
    const yoke_network_card &info = machine.networks[network].info;
    return info.port > 1 ? format("%s:%d", info.name, info.port) : info.name;
}

}  // namespace

int32_t path_between(const std::vector<std::string> &bridges_a, const std::string &a,
                     int32_t node_a, const std::vector<std::string> &bridges_b,
                     const std::string &b, int32_t node_b)
{
    if (!a.empty() && slot_of(a) == slot_of(b)) return YOKE_PATH_BOARD;
    for (size_t i = 0; i < bridges_a.size(); ++i) {
        const auto meet = std::find(bridges_b.begin(), bridges_b.end(), bridges_a[i]);
        if (meet == bridges_b.end()) continue;
        // A switch is a port above and a port below: two bridges on each side at most.
        const bool one = i <= 1 && meet - bridges_b.begin() <= 1;
        return one ? YOKE_PATH_SWITCH : YOKE_PATH_SWITCHES;
    }
    if (!a.empty() && !b.empty() && host_bus(bridges_a, a) == host_bus(bridges_b, b))
        return YOKE_PATH_BRIDGE;
    // An unknown path counts as the longest path.
    return node_a >= 0 && node_a == node_b ? YOKE_PATH_NODE : YOKE_PATH_SYSTEM;
}

const char *path_label(int32_t path)
{
    switch (path) {
        case YOKE_PATH_SELF:
            return "X";
        case YOKE_PATH_BOARD:
        case YOKE_PATH_SWITCH:
            return "PIX";
        case YOKE_PATH_SWITCHES:
            return "PXB";
        case YOKE_PATH_BRIDGE:
            return "PHB";
        case YOKE_PATH_NODE:
            return "NODE";
        default:
            return "SYS";
    }
}

void label_link(yoke_card_link &link)
{
    put(link.label, link.nvlinks > 0 ? format("NV%d", link.nvlinks) : path_label(link.path));
}

void link_by_bus(Machine &machine)
{
    const size_t count = machine.cards.size();
    machine.links.assign(count * count, yoke_card_link{});
    for (size_t a = 0; a < count; ++a) {
        for (size_t b = 0; b < count; ++b) {
            const Card &one = machine.cards[a], &other = machine.cards[b];
            yoke_card_link &link = machine.links[a * count + b];
            link.struct_size = sizeof link;
            link.path = a == b ? YOKE_PATH_SELF
                               : path_between(one.bridges, one.info.pci, one.info.numa_node,
                                              other.bridges, other.info.pci, other.info.numa_node);
            // A card reaches itself; an instance of a partitioned card reaches no other card.
            const bool part = one.info.kind == YOKE_CARD_MIG || other.info.kind == YOKE_CARD_MIG;
            link.peer = a == b ? 1 : part ? 0 : -1;
            label_link(link);
        }
    }
}

double pcie_rate(int generation, int width)
{
    constexpr double kRates[] = {
        0,
#define YOKE_PCIE(generation, rate) rate,
#include "core/machine/pcie.def"
#undef YOKE_PCIE
    };
    if (generation < 1 || width < 1) return 0;
    return kRates[std::min<size_t>(generation, std::size(kRates) - 1)] * width;
}

std::string topology_text(const Machine &machine)
{
    const size_t cards = machine.cards.size(), networks = machine.networks.size();
    if (cards == 0) return "no GPU\n";
    std::vector<std::string> titles;
    for (size_t i = 0; i < cards; ++i) titles.push_back(card_title(machine, i));
    for (size_t i = 0; i < networks; ++i) titles.push_back(network_title(machine, i));
    size_t width = 7;
    for (const std::string &title : titles) width = std::max(width, title.size() + 2);
    std::string text = column("", width);
    for (const std::string &title : titles) text += column(title, width);
    text += "NUMA\n";
    for (size_t i = 0; i < cards; ++i) {
        text += column(titles[i], width);
        for (size_t j = 0; j < cards; ++j)
            text += column(machine.links[i * cards + j].label, width);
        for (size_t j = 0; j < networks; ++j) text += column(network_label(machine, i, j), width);
        const int32_t node = machine.cards[i].info.numa_node;
        text += (node < 0 ? "-" : std::to_string(node)) + "\n";
    }
    return text + kLegend;
}

}  // namespace yoke
