// Check 54: whether an IOMMU or ACS stands in the way of direct copies over PCI Express.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"

#include <algorithm>
#include <array>
#include <set>

namespace yoke::doctor {

namespace {

using Bridges = std::vector<std::string>;

const char *const kInBios = "for good: in the BIOS disable ACS, or IO virtualization";

std::string on_host(const Facts &facts)
{
    return facts.in_container() ? "on the host: " : "";
}

// A pair of devices that copy to each other directly over PCI Express: cards, or a card and a port of a network.
struct Route {
    std::string from, to;  // labels for people
    std::string from_pci, to_pci;
    Bridges from_bridges, to_bridges;
};

// Returns the pairs of cards with direct copies over PCI Express. NVLink serves the other pairs, or the driver says
// that the host does.
std::vector<Route> routes_of_cards(const Facts &facts)
{
    std::vector<Route> routes;
    const std::vector<int> cards = working_gpus(facts);
    for (size_t i = 0; i < cards.size(); ++i)
        for (size_t j = i + 1; j < cards.size(); ++j) {
            const int a = cards[i], b = cards[j];
            const yoke_card_link &link = facts.machine.link(a, b);
            if (link.nvlinks > 0 || link.peer == 0) continue;
            routes.push_back({label(facts, a), label(facts, b), card(facts, a).pci,
                              card(facts, b).pci, facts.machine.card(a).bridges,
                              facts.machine.card(b).bridges});
        }
    return routes;
}

// Returns the pairs of a card and a network with direct access to the card's memory: data-centre cards with memory of
// their own.
std::vector<Route> routes_to_networks(const Facts &facts)
{
    std::vector<Route> routes;
    for (const int i : working_gpus(facts)) {
        if (is_consumer(facts, i) || card(facts, i).kind == YOKE_CARD_INTEGRATED) continue;
        for (const NetworkCard &network : facts.machine.networks)
            if (network.info.active == 1)
                routes.push_back({label(facts, i), network.info.name, card(facts, i).pci,
                                  network.info.pci, facts.machine.card(i).bridges,
                                  network.bridges});
    }
    return routes;
}

// Returns the switch's own port above a device: the last bridge on the way up before a bridge above both devices.
// Returns "" if there is no such port, or no common bridge.
std::string port_below_switch(const Bridges &bridges, const Bridges &others)
{
    const auto is_shared = [&](const std::string &bridge) {
        return std::find(others.begin(), others.end(), bridge) != others.end();
    };
    const auto shared = std::find_if(bridges.begin(), bridges.end(), is_shared);
    return shared == bridges.begin() || shared == bridges.end() ? "" : *(shared - 1);
}

std::array<std::string, 2> ports_of(const Route &route)
{
    return {port_below_switch(route.from_bridges, route.to_bridges),
            port_below_switch(route.to_bridges, route.from_bridges)};
}

// Returns whether a port is known to send requests, or their answers, from below to the root.
bool redirects(const Facts &facts, const std::string &port)
{
    const auto control = facts.acs.find(port);
    return control != facts.acs.end() && control->second & 0x0c;
}

const IommuGroup *group_of(const Facts &facts, const std::string &pci)
{
    const auto found = facts.iommu.find(pci);
    return found == facts.iommu.end() ? nullptr : &found->second;
}

enum class Acs { kOff, kOn, kWasOn, kUnknown };

// Returns how ACS affects a route through a switch. Only an administrator may read ACS. For other users, the IOMMU
// groups show it: the kernel puts devices below one switch into different groups only if ACS keeps them apart at the
// kernel's start.
Acs acs_of(const Facts &facts, const Route &route)
{
    const std::array<std::string, 2> ports = ports_of(route);
    if (ports[0].empty() || ports[1].empty()) return Acs::kOff;  // only the root joins the devices
    if (redirects(facts, ports[0]) || redirects(facts, ports[1])) return Acs::kOn;
    if (facts.acs.count(ports[0]) && facts.acs.count(ports[1])) return Acs::kOff;
    const IommuGroup *a = group_of(facts, route.from_pci), *b = group_of(facts, route.to_pci);
    if (!a || !b || a->number.empty() || b->number.empty()) return Acs::kUnknown;
    return a->number == b->number ? Acs::kOff : Acs::kWasOn;
}

// Sentence about several routes: it shows the first route and counts the rest.
struct Routes {
    std::string first;
    int count = 0;
    std::set<std::string> ports;  // ports of the joining switches

    void add(const Route &route)
    {
        if (count++ == 0) first = route.from + " and " + route.to;
        for (const std::string &port : ports_of(route))
            if (!port.empty()) ports.insert(port);
    }
    std::string text() const
    {
        if (count < 2) return ": between " + first;
        return ": between " + first + format(", and %d more pairs", count - 1);
    }
};

void tell_translated(const Facts &facts, const Routes &routes, Findings &all)
{
    if (!routes.count) return;
    const std::string host = on_host(facts);
    all.add(
        kWarn,
        "an IOMMU translates addresses, so direct copies are slow, hang or deliver wrong bytes" +
            routes.text(),
        host + pass_through(facts) + "\n" + host + "sudo reboot");
}

void tell_redirected(const Facts &facts, const Routes &routes, Findings &all)
{
    if (!routes.count) return;
    std::string ports, remedy;
    for (const std::string &port : routes.ports) {
        if (!redirects(facts, port)) continue;
        add_part(ports, port);
        remedy +=
            on_host(facts) + "sudo setpci -s " + port +
            " ECAP_ACS+0x6.w=0000 # until the next start; not if virtual machines share the switch\n";
    }
    all.add(kWarn,
            "ACS of " + ports + " sends direct copies up to the root of the bus" + routes.text(),
            remedy + kInBios);
}

void tell_parted(const Facts &facts, const Routes &routes, Findings &all)
{
    if (!routes.count) return;
    all.add(
        kWarn,
        "IOMMU groups separate devices of one switch: ACS was on when the kernel started, and may still send direct copies up to the root of the bus" +
            routes.text(),
        on_host(facts) + "sudo lspci -vvv -s " + *routes.ports.begin() +
            " | grep ACSCtl # ReqRedir+: ACS is on\n" + kInBios);
}

}  // namespace

bool is_translated(const Facts &facts, const std::string &pci)
{
    const IommuGroup *group = group_of(facts, pci);
    return group && group->type.compare(0, 3, "DMA") == 0;
}

std::string pass_through(const Facts &facts)
{
    return family_of(facts) == Family::kFedora
               ? "sudo grubby --update-kernel=ALL --args=iommu=pt"
               : "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && sudo update-grub";
}

Finding check_peer_routes(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    if (const auto alone = why_alone(facts)) return skip(*alone);
    std::vector<Route> routes = routes_of_cards(facts);
    for (Route &each : routes_to_networks(facts)) routes.push_back(std::move(each));
    if (routes.empty()) return skip("no two GPUs copy to each other over PCI Express");
    Routes translated, on, was_on;
    int unknown = 0;
    for (const Route &route : routes) {
        if (is_translated(facts, route.from_pci) || is_translated(facts, route.to_pci))
            translated.add(route);
        const Acs acs = acs_of(facts, route);
        if (acs == Acs::kOn) on.add(route);
        if (acs == Acs::kWasOn) was_on.add(route);
        unknown += acs == Acs::kUnknown;
    }
    Findings all;
    tell_translated(facts, translated, all);
    tell_redirected(facts, on, all);
    tell_parted(facts, was_on, all);
    return all.or_ok(
        format("%d pairs copy directly over PCI Express, and no IOMMU translates their addresses",
               static_cast<int>(routes.size())) +
        (unknown
             ? format("; for %d of them, only an administrator can read whether ACS is on", unknown)
             : ""));
}

}  // namespace yoke::doctor
