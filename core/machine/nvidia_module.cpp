#include "core/machine/nvidia_module.h"

#include "core/machine/nvidia_card.h"
#include "core/machine/proc.h"
#include "core/machine/sysfs.h"

#include <algorithm>
#include <cstdlib>

namespace yoke {

namespace {

constexpr struct {
    const char *chip;
    int32_t major, minor;
} kChips[] = {{"tegra210", 5, 3},
              {"tegra186", 6, 2},
              {"tegra194", 7, 2},
              {"tegra234", 8, 7},
              {"tegra264", 11, 0}};

// The first text in `line` that looks like 580.82.07.
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
    // Of a card that was never started the module knows only "GPU-????????-...".
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

void add_integrated_card(const Root &root, Machine &machine)
{
    const std::string model = root.text("/proc/device-tree/model", 256);
    const bool tegra = model.find("NVIDIA") != std::string::npos &&
                       (root.has("/dev/nvhost-gpu") || root.has("/dev/nvhost-ctrl-gpu") ||
                        root.has("/dev/nvmap") || root.has("/dev/nvgpu"));
    if (!tegra) return;
    Card card = unknown_card();
    yoke_card_info &info = card.info;
    info.kind = YOKE_CARD_INTEGRATED;
    info.present = 1;
    info.is_egpu = 0;
    put(info.name, model);
    put_nvidia(info, false);
    put(info.driver, root.has("/sys/module/nvgpu") ? "nvgpu" : "");
    const std::string chip = root.text("/proc/device-tree/compatible", 256);
    for (const auto &known : kChips) {
        if (chip.find(known.chip) == std::string::npos) continue;
        info.cc_major = known.major;
        info.cc_minor = known.minor;
    }
    put_host_memory(root, info);  // which is the processor's
    machine.cards.push_back(card);
}

}  // namespace yoke
