#include "core/machine/sysfs.h"
#include "core/base/text.h"

#include "core/base/error.h"
#include "core/machine/vendor.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace yoke {

namespace {

// Returns whether the device is a display controller, or an accelerator without display (class 0x12).
bool is_card(int64_t device_class)
{
    const int64_t base = device_class >> 16 & 0xff;
    return base == 0x03 || base == 0x12;
}

// Returns 1 if a monitor is on a connector of the card, 0 if all known connectors are free, -1 if unknown.
int32_t read_display(const Folder &device)
{
    const Folder drm(device, "drm");
    int32_t display = -1;
    for (const std::string &card : drm.names()) {
        if (card.rfind("card", 0) != 0) continue;
        const Folder connectors(drm, card);
        for (const std::string &name : connectors.names()) {
            if (name.rfind(card + "-", 0) != 0) continue;
            const std::string status = connectors.text(name + "/status", 64);
            if (status == "connected") return 1;
            if (status == "disconnected") display = 0;
        }
    }
    return display;
}

void read_link(const Folder &device, yoke_card_info &info)
{
    info.link_generation = pcie_generation(device.text("current_link_speed", 64));
    info.link_generation_max = pcie_generation(device.text("max_link_speed", 64));
    info.link_width = static_cast<int32_t>(device.number("current_link_width"));
    info.link_width_max = static_cast<int32_t>(device.number("max_link_width"));
    // A link that is down reads as a width of 255.
    if (info.link_width <= 0 || info.link_width > 64) info.link_width = -1;
    if (info.link_width_max <= 0 || info.link_width_max > 64) info.link_width_max = -1;
}

void name_card(yoke_card_info &info, const Vendor *vendor, int64_t vendor_id, int64_t id)
{
    put(info.name, format("%s %04x:%04x", vendor ? vendor->brand() : "PCI",
                          static_cast<unsigned>(vendor_id), static_cast<unsigned>(id)));
}

Card read_card(const Folder &bus, const std::string &address, const Folder &device)
{
    Card card = unknown_card();
    yoke_card_info &info = card.info;
    const int64_t vendor_id = device.number("vendor", 0), id = device.number("device", 0);
    const Vendor *vendor = find_vendor(vendor_id);
    info.pci_id = static_cast<int32_t>((vendor_id & 0xffff) << 16 | (id & 0xffff));
    info.kind = YOKE_CARD_GPU;
    put(info.pci, address);
    put(info.vendor, vendor_name(vendor_id));
    if (vendor) vendor->place_card(info);
    put(info.driver, base_name(device.link("driver")));
    name_card(info, vendor, vendor_id, id);
    info.present = 1;
    info.numa_node = static_cast<int32_t>(device.number("numa_node"));
    const std::string power = device.text("power/runtime_status", 64);
    info.asleep = power.empty() ? -1 : power == "suspended";
    info.is_egpu = device.text("removable", 64) == "removable";
    card.bridges = bridges_of(bus.link(address), address);
    if (info.asleep == 1) return card;
    read_link(device, info);
    info.display = read_display(device);
    if (vendor) vendor->read_card(device, info);
    return card;
}

// ---- Enclosures -----------------------------------------------------------------------------------------------------

// Box at the end of a Thunderbolt or USB4 cable.
struct Enclosure {
    std::string name;
    double rate;
    std::vector<std::string> path;  // PCI addresses on the way: the host's controller and above
};

// Returns the cable's rate in bits per second: "20.0 Gb/s" times the width, else the rate of the generation's cable;
// NaN if unknown.
double read_rate(const Folder &device)
{
    const double speed = number_of(device.text("rx_speed", 64));
    const int64_t width = device.number("rx_lanes", 1);
    if (speed > 0) return speed * 1e9 * static_cast<double>(std::max<int64_t>(width, 1));
    constexpr double kRates[] = {0, 10e9, 20e9, 40e9, 40e9, 80e9};
    const int64_t generation = device.number("generation");
    return generation > 0 && generation <= 5 ? kRates[generation] : NAN;
}

std::vector<Enclosure> read_thunderbolt(const Root &root)
{
    std::vector<Enclosure> found;
    const Folder bus = root.folder("/sys/bus/thunderbolt/devices");
    for (const std::string &name : bus.names()) {
        unsigned domain = 0, route = 0;
        char rest = 0;
        // "0-0" is the host; "0-1:1.1" and "domain0" are no boxes.
        if (sscanf(name.c_str(), "%u-%x%c", &domain, &route, &rest) != 2 || route == 0) continue;
        const Folder device(bus, name);
        if (device.number("authorized", 1) == 0) continue;  // its devices are not on the PCI bus
        const std::string vendor = device.text("vendor_name"), model = device.text("device_name");
        found.push_back(
            {trimmed(vendor + " " + model), read_rate(device), bridges_of(bus.link(name), "")});
    }
    return found;
}

size_t shared_bridges(const Card &card, const Enclosure &enclosure)
{
    return static_cast<size_t>(
        std::count_if(card.bridges.begin(), card.bridges.end(), [&](const std::string &bridge) {
            return std::find(enclosure.path.begin(), enclosure.path.end(), bridge) !=
                   enclosure.path.end();
        }));
}

// Sets a card's enclosure and its least rate, from the boxes with `shared` bridges in common with the card. Two boxes
// at one controller cannot be told apart from here, so both are named.
void name_enclosure(Card &card, const std::vector<Enclosure> &enclosures, size_t shared)
{
    std::vector<std::string> names;
    for (const Enclosure &each : enclosures) {
        if (shared_bridges(card, each) != shared) continue;
        const double known = card.info.enclosure_rate;
        if (!(known <= each.rate)) card.info.enclosure_rate = each.rate;
        if (std::find(names.begin(), names.end(), each.name) == names.end())
            names.push_back(each.name);
    }
    std::string text;
    for (const std::string &name : names) add_part(text, name, " or ");
    put(card.info.enclosure, text);
}

}  // namespace

std::vector<Card> read_pci_cards(const Root &root, const std::string &only)
{
    std::vector<Card> cards;
    const Folder bus = root.folder("/sys/bus/pci/devices");
    for (const std::string &address : only.empty() ? bus.names() : std::vector{only}) {
        const Folder device(bus, address);
        if (device.is_open() && is_card(device.number("class", 0)))
            cards.push_back(read_card(bus, pci_address(address), device));
    }
    return cards;
}

std::vector<std::string> bridges_of(const std::string &link, const std::string &address)
{
    std::vector<std::string> bridges;
    size_t start = 0;
    while (start < link.size()) {
        const size_t end = std::min(link.find('/', start), link.size());
        const std::string part = pci_address(link.substr(start, end - start));
        if (!part.empty() && part != address) bridges.insert(bridges.begin(), part);
        start = end + 1;
    }
    return bridges;
}

std::string pci_address(std::string_view text)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    int length = 0;
    const std::string copy(text);
    if (sscanf(copy.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &length) !=
            4 ||
        static_cast<size_t>(length) != copy.size())
        return "";
    return format("%04x:%02x:%02x.%x", domain, bus, device, function);
}

void read_enclosures(const Root &root, std::vector<Card> &cards)
{
    const Folder bus = root.folder("/sys/bus/pci/devices");
    const std::vector<Enclosure> enclosures = read_thunderbolt(root);
    for (Card &card : cards) {
        for (const std::string &bridge : card.bridges)
            if (bus.text(bridge + "/removable", 64) == "removable") card.info.is_egpu = 1;
        size_t most = 0;
        for (const Enclosure &each : enclosures) most = std::max(most, shared_bridges(card, each));
        // A controller within the processor shares no bridge with devices behind it.
        if (most == 0 && card.info.is_egpu != 1) continue;
        card.info.is_egpu = 1;
        name_enclosure(card, enclosures, most);
    }
}

std::vector<UnauthorizedDock> unauthorized_docks(const Root &root)
{
    const Folder bus = root.folder("/sys/bus/thunderbolt/devices");
    std::vector<UnauthorizedDock> docks;
    for (const std::string &name : bus.names()) {
        unsigned domain = 0, route = 0;
        char rest = 0;
        if (sscanf(name.c_str(), "%u-%x%c", &domain, &route, &rest) != 2 || route == 0) continue;
        const Folder device(bus, name);
        if (device.number("authorized", 1) != 0) continue;
        docks.push_back({trimmed(device.text("vendor_name") + " " + device.text("device_name")),
                         device.text("unique_id")});
    }
    return docks;
}

int32_t pcie_generation(std::string_view speed)
{
    constexpr double kSpeeds[] = {2.5, 5, 8, 16, 32, 64, 128};
    const double rate = number_of(speed);
    for (int32_t i = 0; i < 7; ++i)
        if (rate == kSpeeds[i]) return i + 1;
    return -1;
}

std::string vendor_name(int64_t id)
{
    const Vendor *vendor = find_vendor(id);
    return vendor ? vendor->name() : format("%04x", static_cast<unsigned>(id & 0xffff));
}

}  // namespace yoke
