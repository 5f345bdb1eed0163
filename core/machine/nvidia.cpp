// NVIDIA's cards: facts from the driver, the management library and CUDA's rules, and reasons why a card cannot be
// used.
#include "core/base/error.h"
#include "core/machine/build.h"
#include "core/machine/nvidia_card.h"
#include "core/machine/nvidia_module.h"
#include "core/machine/nvml.h"
#include "core/machine/proc.h"
#include "core/machine/vendor.h"
#include "core/machine/visibility.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace yoke {

namespace {

Rejection for_driver(const Machine &machine, const yoke_card_info &info)
{
    const std::string_view driver = info.driver;
    if (!driver.empty() && may_be_held_by_nvidia(info)) return {};
    if (driver == "nouveau")
        return {
            Reason::kOtherDriver,
            "the nouveau driver holds the card: install the NVIDIA driver, write 'blacklist nouveau' to /etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs (update-initramfs -u), restart"};
    if (driver == "vfio-pci")
        return {
            Reason::kOtherDriver,
            format(
                "vfio-pci holds the card for a virtual machine: use the card there, or bind the card to nvidia again: echo %s > /sys/bus/pci/drivers/vfio-pci/unbind; echo > /sys/bus/pci/devices/%s/driver_override; echo %s > /sys/bus/pci/drivers/nvidia/bind",
                info.pci, info.pci, info.pci)};
    if (!driver.empty())
        return {
            Reason::kOtherDriver,
            format(
                "the driver '%s' holds the card, not nvidia: unbind this driver and load the NVIDIA driver",
                info.driver)};
    if (info.nvml_index >= 0) return {};  // NVML reaches the card all the same
    if (machine.driver.empty())
        return {
            Reason::kNoDriver,
            "no driver holds the card: install the NVIDIA driver; if it is installed, modprobe nvidia and see dmesg (Secure Boot refuses a module that is not signed)"};
    return {
        Reason::kNotHeld,
        "the NVIDIA driver is loaded but does not hold the card: the card may be too new or too old for this driver, or may have failed; see dmesg | grep -i nvrm"};
}

// Checks the files that a process opens for a card. Rejects the card if this user may not open a file, or if a file
// is missing in a container.
Rejection for_files(const Root &root, const Machine &machine, const yoke_card_info &info)
{
    const std::string control = root.path("/dev/nvidiactl");
    if (access(control.c_str(), F_OK) != 0) return {};
    const std::string file = format("/dev/nvidia%d", info.minor);
    for (const std::string &each : {std::string("/dev/nvidiactl"), file}) {
        if (info.minor < 0 && each == file) continue;
        if (access(root.path(each).c_str(), R_OK | W_OK) == 0) continue;
        if (errno == EACCES || errno == EPERM)
            return {
                Reason::kClosedFile,
                format(
                    "this user may not open %s: give the file to the user's group by a udev rule, or chmod a+rw %s",
                    each.c_str(), each.c_str())};
        // Outside of containers the driver's own helper makes the file at first use.
        if (errno == ENOENT && !machine.container.empty())
            return {
                Reason::kMissingFile,
                format(
                    "%s is not in this container: start it with --gpus all, or with the card among NVIDIA_VISIBLE_DEVICES",
                    each.c_str())};
    }
    return {};
}

const yoke_card_process *holder_of(const Card &card)
{
    for (const yoke_card_process &process : card.processes)
        if (process.compute && !(process.visible == 1 && process.pid == getpid())) return &process;
    return nullptr;
}

Rejection for_modes(const Card &card)
{
    const yoke_card_info &info = card.info;
    if (info.compute_mode == YOKE_COMPUTE_PROHIBITED)
        return {Reason::kProhibited,
                format("the compute mode is 'prohibited': nvidia-smi -i %s -c 0", info.uuid)};
    const yoke_card_process *holder = holder_of(card);
    // The server of MPS holds an exclusive card for all.
    if (info.compute_mode == YOKE_COMPUTE_EXCLUSIVE && holder && info.mps != 1)
        return {
            Reason::kHeldAlone,
            format(
                "the compute mode is 'exclusive' and process %d (%s) uses the GPU: end that process, or nvidia-smi -i %s -c 0",
                holder->pid, holder->visible == 1 ? holder->name : "not visible from here",
                info.uuid)};
    if (info.kind == YOKE_CARD_MIG || info.mig != 1) return {};
    if (info.mig_instances > 0)
        return {Reason::kPartitioned,
                format("the GPU is partitioned into %d MIG instances: use one of them",
                       info.mig_instances)};
    if (info.mig_instances == 0)
        return {
            Reason::kNoInstances,
            format(
                "MIG is on, but there is no instance: nvidia-smi mig -i %d -cgi 0 -C (the whole card), or nvidia-smi -i %d -mig 0",
                info.nvml_index, info.nvml_index)};
    return {};
}

// Rejects the card if NVML failed, because CUDA fails in the same way.
Rejection for_library(const Machine &machine)
{
    const NvmlFailure &failure = machine.nvml.failure;
    if (failure.kind != NvmlFailure::Kind::kNotStarted) return {};
    return {reason_of(failure), nvml_failure_text(machine)};
}

Rejection rejection_of(const Root &root, const Machine &machine, const Card &card,
                       const Rejection &by_build)
{
    const yoke_card_info &info = card.info;
    if (info.present == 0)
        return {
            Reason::kGone,
            "the card no longer answers (it has fallen off the bus), and a reset does not help: restart the machine; if the card does not come back, check power, cable and seat, and dmesg for Xid 79"};
    if (is_off_bus(info)) {
        if (serves(root, info)) return by_build;
        return {
            Reason::kNoCode,
            "this build has no CUDA module with code for this GPU within a processor (Jetson): yoke doctor names such a build; until then use the cpu"};
    }
    if (card.rejected != Reason::kNone) return {card.rejected, info.reason};
    for (const Rejection &rejection :
         {for_driver(machine, info), for_library(machine), for_files(root, machine, info),
          for_modes(card), by_build, reject_card(root, machine, info)})
        if (rejection) return rejection;
    return {};
}

void mark_visible(Machine &machine)
{
    const CudaVariables variables = cuda_variables();
    const Visible visible = visible_cards(machine, variables.visible, variables.order);
    int32_t number = 0;
    for (const int each : visible.cards) {
        Card &card = machine.cards[static_cast<size_t>(each)];
        // The CUDA module skips a card without code in this build, and the next card gets the number.
        if (lacks_code(card.rejected)) continue;
        card.info.visible = number++;
    }
    machine.visible_problem = visible.problem.empty() ? visible.dropped : visible.problem;
}

// Marks all cards held by the driver as cards of MPS, if an MPS daemon runs. A listening daemon serves every card of
// its machine on a client's request.
void mark_mps(const Root &root, Machine &machine)
{
    const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
    const std::string folder = given && *given ? given : "/tmp/nvidia-mps";
    const int64_t pid = root.folder(folder).number("nvidia-cuda-mps-control.pid");
    if (pid <= 0 || !root.has("/proc/" + std::to_string(pid))) return;
    for (Card &card : machine.cards)
        if (is_held_by_nvidia(card.info)) card.info.mps = 1;
}

// Marks the container's cards, because in a container, the bus shows all cards of the host. NVML lists the
// container's cards. If NVML does not answer, the module's own list counts if it leaves cards out, else the device
// files count.
void mark_granted(const Root &root, Machine &machine)
{
    if (machine.container.empty()) return;
    const auto has_file = [&](const Card &card) {
        return card.info.minor >= 0 && root.has("/dev/nvidia" + std::to_string(card.info.minor));
    };
    bool is_filtered = false, any_file = false;
    for (const Card &card : machine.cards) {
        if (!is_held_by_nvidia(card.info)) continue;
        is_filtered |= card.info.minor < 0;
        any_file |= has_file(card);
    }
    for (Card &card : machine.cards) {
        const yoke_card_info &info = card.info;
        if (!is_held_by_nvidia(info) || info.kind == YOKE_CARD_MIG) continue;
        if (machine.nvml.answered())
            card.granted = info.nvml_index >= 0 || info.asleep == 1 || info.present == 0 ||
                           card.rejected != Reason::kNone;
        else if (is_filtered)
            card.granted = info.minor >= 0;
        else if (any_file)
            card.granted = has_file(card);
    }
}

class Nvidia final : public Vendor {
public:
    constexpr Nvidia() : Vendor(0x10de, kNvidia, "NVIDIA") {}

    void read_driver(const Root &root, Machine &machine) const override
    {
        yoke::read_driver(root, machine);
    }
    void place_card(yoke_card_info &info) const override { mark_integrated(info); }
    void add_vanished_cards(const Root &root, Machine &machine) const override
    {
        yoke::add_vanished_cards(root, machine);
    }
    void add_integrated_cards(const Root &root, Machine &machine) const override
    {
        add_integrated_card(root, machine);
    }
    void ask_driver(const Root &root, Machine &machine, bool links) const override
    {
        ask_nvml(root, machine, links);
    }
    void complete_cards(const Root &root, Machine &machine) const override
    {
        for (Card &card : machine.cards)
            if (is_ours(card) && !card.info.uuid[0]) read_module_card(root, card);
        for (Card &card : machine.cards)
            if (is_ours(card)) settle_integrated(root, card.info);
        mark_granted(root, machine);
        mark_mps(root, machine);
    }
    void reject_cards(const Root &root, Machine &machine) const override
    {
        const bool any = std::any_of(machine.cards.begin(), machine.cards.end(),
                                     [this](const Card &card) { return is_ours(card); });
        if (!any) return;
        const Rejection by_build = reject_driver(root, machine);
        for (Card &card : machine.cards)
            if (is_ours(card)) reject(card, rejection_of(root, machine, card, by_build));
    }
    void number_devices(Machine &machine) const override { mark_visible(machine); }
    bool holds(const yoke_card_info &info) const override { return is_held_by_nvidia(info); }
};
constexpr Nvidia nvidia;

}  // namespace

const Vendor &nvidia_vendor() noexcept
{
    return nvidia;
}

}  // namespace yoke
