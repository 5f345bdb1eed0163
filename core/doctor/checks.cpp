#include "core/doctor/checks.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/machine/nvidia_card.h"
#include "yoke/doctor.h"

#include <algorithm>
#include <cstdlib>

namespace yoke::doctor {

static_assert(kOk == YOKE_CHECK_OK && kWarn == YOKE_CHECK_WARN && kFail == YOKE_CHECK_FAIL &&
              kSkip == YOKE_CHECK_SKIP);

Finding found(int status, std::string evidence, std::string remedy, int card)
{
    return {status, std::move(evidence), std::move(remedy), card};
}

void Findings::add(int status, const std::string &evidence, const std::string &remedy, int card)
{
    if (sum_.evidence.empty() || status > sum_.status) sum_.card = card;
    sum_.status = std::max(sum_.status, status);
    add_part(sum_.evidence, evidence, "; ");
    for (const std::string &line : lines_of(remedy)) {
        const auto known = lines_of(sum_.remedy);
        if (std::find(known.begin(), known.end(), line) != known.end()) continue;
        add_part(sum_.remedy, line, "\n");
    }
}

Finding Findings::or_ok(const std::string &evidence) const
{
    return empty() ? ok(evidence) : sum_;
}

const yoke_card_info &card(const Facts &facts, int index)
{
    return facts.machine.card(index).info;
}

std::vector<int> gpus(const Facts &facts)
{
    std::vector<int> found;
    for (size_t i = 0; i < facts.machine.cards.size(); ++i) {
        const yoke_card_info &info = facts.machine.cards[i].info;
        if (std::string_view(info.vendor) == "nvidia" && info.kind != YOKE_CARD_MIG)
            found.push_back(static_cast<int>(i));
    }
    return found;
}

std::vector<int> working_gpus(const Facts &facts)
{
    std::vector<int> found;
    for (const int i : gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const bool held = is_off_bus(info) || info.uuid[0];
        const bool granted = facts.machine.card(i).granted;
        if (held && granted && info.present != 0) found.push_back(i);
    }
    return found;
}

std::string label(const Facts &facts, int index)
{
    const yoke_card_info &info = card(facts, index);
    const int number = info.nvml_index >= 0 ? info.nvml_index : info.index;
    std::string text = "GPU " + std::to_string(number) + " (";
    text +=
        info.name[0] ? info.name : format("PCI device %08x", static_cast<unsigned>(info.pci_id));
    return text + (info.pci[0] ? std::string(", ") + info.pci : "") + ")";
}

std::optional<std::string> no_gpus(const Facts &facts)
{
    if (!gpus(facts).empty()) return std::nullopt;
    return "there is no NVIDIA GPU here (check 1)";
}

bool is_wsl(const Facts &facts)
{
    return facts.machine.virtual_machine == "wsl";
}

std::vector<std::string> missing_nodes(const Facts &facts)
{
    std::vector<std::string> missing;
    for (const int i : working_gpus(facts)) {
        const int minor = card(facts, i).minor;
        const std::string path = format("/dev/nvidia%d", minor);
        if (minor >= 0 && !facts.nodes.count(path)) missing.push_back(path);
    }
    return missing;
}

std::optional<std::string> no_working_gpus(const Facts &facts)
{
    if (auto none = no_gpus(facts)) return none;
    if (!working_gpus(facts).empty()) return std::nullopt;
    return "the driver reports no GPU (checks 2 to 10)";
}

std::string active_port(const Facts &facts)
{
    for (const NetworkCard &network : facts.machine.networks)
        if (network.info.active == 1) return network.info.name;
    return "";
}

std::optional<std::string> why_alone(const Facts &facts)
{
    if (working_gpus(facts).size() > 1 || !active_port(facts).empty()) return std::nullopt;
    return "the machine has one GPU, and no InfiniBand or RoCE port is up";
}

bool is_consumer(const Facts &facts, int index)
{
    const std::string_view name = card(facts, index).name;
    return name.find("GeForce") != name.npos || name.find("TITAN") != name.npos;
}

int nvml_code(const Facts &facts)
{
    return facts.machine.nvml.failure.code;
}

Family family_of(const Facts &facts)
{
    const std::string all = " " + facts.distribution + " " + facts.distribution_like + " ";
    const auto names = [&](const char *name) { return all.find(name) != all.npos; };
    if (facts.distribution == "debian") return Family::kDebian;
    if (names(" ubuntu ")) return Family::kUbuntu;
    if (names(" fedora ") || names(" rhel ")) return Family::kFedora;
    return names(" arch ") ? Family::kArch : Family::kDebian;
}

std::string install(const Facts &facts, const Packages &packages)
{
    // The desktop's packages make such a board unusable.
    if (facts.is_jetson) return "sudo apt-get install nvidia-jetpack";
    switch (family_of(facts)) {
        case Family::kUbuntu:
            return std::string("sudo apt-get install ") + packages.ubuntu;
        case Family::kFedora:
            return std::string("sudo dnf install ") + packages.fedora;
        case Family::kArch:
            return std::string("sudo pacman -S ") + packages.arch;
        case Family::kDebian:
            break;
    }
    return std::string("sudo apt-get install ") + packages.debian;
}

std::string rebuild_initramfs(const Facts &facts)
{
    switch (family_of(facts)) {
        case Family::kFedora:
            return "sudo dracut --force";
        case Family::kArch:
            return "sudo mkinitcpio -P";
        default:
            return "sudo update-initramfs -u";
    }
}

std::string mebibytes(double bytes)
{
    return format("%.0f MiB", bytes / (1 << 20));
}

std::string gigabytes_a_second(double rate)
{
    return format("%.2f GB/s", rate / 1e9);
}

}  // namespace yoke::doctor
