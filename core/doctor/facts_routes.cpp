// Facts of what diverts direct copies over PCI Express: groups of the IOMMU, and ACS of the bridges above cards.
#include "core/base/error.h"
#include "core/doctor/facts.h"

namespace yoke::doctor {

namespace {

constexpr size_t kPlain = 256;  // bytes of every PCI device; capabilities such as ACS follow
constexpr size_t kWhole = 4096;
constexpr int kAcs = 0x0d;

unsigned number_at(const std::string &bytes, size_t at, size_t size)
{
    unsigned number = 0;
    for (size_t i = size; i-- > 0;)
        number = number << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    return number;
}

// Returns the place of a capability in the linked list of capabilities, or 0 if missing.
size_t place_of(const std::string &configuration, int capability)
{
    size_t at = kPlain;
    // The limit also ends a list with a loop.
    for (size_t steps = 0; at >= kPlain && at < kWhole && steps < kWhole / 4; ++steps) {
        const unsigned head = number_at(configuration, at, 4);
        if (head == 0xffffffffu) return 0;  // the device does not answer
        if (static_cast<int>(head & 0xffff) == capability) return at;
        at = head >> 20;
    }
    return 0;
}

// Returns a configuration with these control bits of ACS alone, because the whole configuration may contain a serial
// number.
std::string configuration_of(int control)
{
    const unsigned head = kAcs | 1u << 16;
    std::string bytes(kPlain, '\0');
    for (const unsigned word : {head & 0xffff, head >> 16, 0u, static_cast<unsigned>(control)}) {
        bytes += static_cast<char>(word & 0xff);
        bytes += static_cast<char>(word >> 8);
    }
    return bytes;
}

std::string folder_of(const std::string &pci)
{
    return "/sys/bus/pci/devices/" + pci;
}

void read_group(RecordedRoot &root, const std::string &pci, Facts &facts)
{
    if (pci.empty()) return;
    RecordedRoot fleeting;  // a recording holds the group as the device's own link
    const IommuGroup group{fleeting.link(folder_of(pci) + "/iommu_group"),
                           root.line(folder_of(pci) + "/iommu_group/type")};
    if (!group.number.empty() || !group.type.empty()) facts.iommu[pci] = group;
}

void read_acs(RecordedRoot &root, const std::vector<std::string> &bridges, Facts &facts)
{
    for (const std::string &pci : bridges) {
        if (facts.acs.count(pci)) continue;
        const std::string path = folder_of(pci) + "/config";
        RecordedRoot fleeting;
        const int control = acs_control(fleeting.text(path, kWhole).value_or(""));
        if (control < 0) continue;
        facts.acs[pci] = control;
        root.note(path, configuration_of(control));
    }
}

}  // namespace

int acs_control(const std::string &configuration)
{
    if (configuration.size() <= kPlain) return -1;
    const size_t at = place_of(configuration, kAcs);
    return at ? static_cast<int>(number_at(configuration, at + 6, 2)) : 0;
}

void read_routes(RecordedRoot &root, Facts &facts)
{
    for (const Card &card : facts.machine.cards) {
        if (card.info.kind == YOKE_CARD_MIG) continue;
        read_group(root, card.info.pci, facts);
        if (std::string_view(card.info.vendor) == "nvidia") read_acs(root, card.bridges, facts);
    }
    for (const NetworkCard &network : facts.machine.networks) {
        read_group(root, network.info.pci, facts);
        read_acs(root, network.bridges, facts);
    }
}

}  // namespace yoke::doctor
