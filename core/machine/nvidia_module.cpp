#include "core/machine/nvidia_module.h"

#include "core/machine/nvidia_card.h"
#include "core/machine/proc.h"
#include "core/machine/sysfs.h"

#include <algorithm>
#include <cstdlib>

namespace yoke {

namespace {

// Processors with a GPU in the chip: the name in a Jetson's device tree, and the first of 128 device numbers that
// NVIDIA reserves for such a GPU on the PCI bus. 0: the GPU is not on the bus.
constexpr struct Chip {
    const char *tree;
    int32_t first_device;
    int32_t major, minor;
} kChips[] = {{"tegra210", 0, 5, 3},       {"tegra186", 0, 6, 2},
              {"tegra194", 0, 7, 2},       {"tegra234", 0, 8, 7},
              {"tegra264", 0x2b00, 11, 0}, {"", 0x2e00, 12, 1}};  // GB10, of DGX Spark

void make_integrated(yoke_card_info &info, const Chip &chip)
{
    info.kind = YOKE_CARD_INTEGRATED;
    info.cc_major = chip.major;
    info.cc_minor = chip.minor;
}

bool is_integrated(const Card &card)
{
    return is_nvidia(card.info) && card.info.kind == YOKE_CARD_INTEGRATED;
}

// Returns the processor of a Jetson, by the device tree; null if unknown.
const Chip *chip_of_board(const Root &root)
{
    const std::string tree = root.text("/proc/device-tree/compatible", 256);
    for (const Chip &chip : kChips)
        if (*chip.tree && tree.find(chip.tree) != std::string::npos) return &chip;
    return nullptr;
}

// Returns the first text in `line` in the form of 580.82.07.
std::string version_in(std::string_view line)
{
    for (size_t i = 0; i < line.size(); ++i) {
        const bool starts = isdigit(static_cast<unsigned char>(line[i])) &&
                            (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t');
        if (!starts) continue;
        const size_t end = std::min(line.find_first_not_of("0123456789.", i), line.size());
        const std::string_view word = line.substr(i, end - i);
        const bool ends = end == line.size() || isspace(static_cast<unsigned char>(line[end]));
        if (ends && word.find('.') != std::string_view::npos) return std::string(word);
    }
    return "";
}

}  // namespace

void read_driver(const Root &root, Machine &machine)
{
    const std::string text = root.text("/proc/driver/nvidia/version");
    const std::string line = field_of(text, "NVRM version");
    std::string version = version_in(line);
    if (version.empty()) version = root.text("/sys/module/nvidia/version", 64);
    if (version.empty()) return;
    machine.driver = version;
    if (line.empty()) return;
    const bool open = line.find("Open Kernel Module") != std::string::npos;
    machine.driver_flavor = open ? DriverFlavor::kOpen : DriverFlavor::kProprietary;
}

void read_module_card(const Root &root, Card &card)
{
    const std::string text =
        root.text(std::string("/proc/driver/nvidia/gpus/") + card.info.pci + "/information");
    if (text.empty()) return;
    const std::string name = field_of(text, "Model"), uuid = field_of(text, "GPU UUID"),
                      minor = field_of(text, "Device Minor");
    if (!name.empty()) put(card.info.name, name);
    // For a card never started, the module knows only "GPU-????????-...".
    if (!card.info.uuid[0] && uuid.find('?') == std::string::npos) put(card.info.uuid, uuid);
    if (card.info.minor < 0 && !minor.empty()) card.info.minor = atoi(minor.c_str());
}

void add_vanished_cards(const Root &root, Machine &machine)
{
    if (!root.has("/sys/bus/pci/devices")) return;
    for (const std::string &name : root.folder("/proc/driver/nvidia/gpus").names()) {
        const std::string address = pci_address(name);
        const bool known = std::any_of(machine.cards.begin(), machine.cards.end(),
                                       [&](const Card &card) { return address == card.info.pci; });
        if (known || address.empty()) continue;
        Card card = unknown_card();
        card.info.kind = YOKE_CARD_GPU;
        card.info.present = 0;
        put(card.info.pci, address);
        put_nvidia(card.info);
        read_module_card(root, card);
        machine.cards.push_back(card);
    }
}

void mark_integrated(yoke_card_info &info)
{
    constexpr int32_t kNumbers = 0x7f;
    for (const Chip &chip : kChips) {
        if (!chip.first_device || (info.pci_id & 0xffff & ~kNumbers) != chip.first_device) continue;
        make_integrated(info, chip);
    }
}

void settle_integrated(const Root &root, yoke_card_info &info)
{
    if (info.kind != YOKE_CARD_INTEGRATED) return;
    info.memory_reserved = -1;
    put_host_memory(root, info);
    info.is_egpu = 0;
    // The bus reports a link, but this link crosses no slot, and no copy uses it.
    info.link_generation = info.link_generation_max = -1;
    info.link_width = info.link_width_max = -1;
}

void add_integrated_card(const Root &root, Machine &machine)
{
    std::vector<Card> &cards = machine.cards;
    if (std::any_of(cards.begin(), cards.end(), is_integrated)) return;
    const std::string model = root.text("/proc/device-tree/model", 256);
    const bool tegra = model.find("NVIDIA") != std::string::npos &&
                       (root.has("/dev/nvhost-gpu") || root.has("/dev/nvhost-ctrl-gpu") ||
                        root.has("/dev/nvmap") || root.has("/dev/nvgpu"));
    if (!tegra) return;
    const Chip *chip = chip_of_board(root);
    // The GPU exists, but is missing on the visible bus: the GPU is hidden from this process, and not lost.
    if (chip && chip->first_device)
        for (Card &card : cards)
            if (is_nvidia(card.info) && card.info.present == 0) {
                card.info.present = 1;
                return make_integrated(card.info, *chip);
            }
    Card card = unknown_card();
    yoke_card_info &info = card.info;
    info.kind = YOKE_CARD_INTEGRATED;
    info.present = 1;
    put(info.name, model);
    put_nvidia(info, false);
    put(info.driver, root.has("/sys/module/nvgpu") ? "nvgpu" : "");
    if (chip) make_integrated(info, *chip);
    settle_integrated(root, info);
    cards.push_back(card);
}

}  // namespace yoke
