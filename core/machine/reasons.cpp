#include "core/machine/reasons.h"

#include "core/base/error.h"
#include "core/machine/build.h"

#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace yoke {

namespace {

Rejection for_other_maker(const yoke_card_info &info)
{
    const std::string_view vendor = info.vendor;
    const bool known = vendor == "amd" || vendor == "intel";
    const std::string maker = known ? std::string(vendor) : "PCI vendor " + std::string(vendor);
    return {Reason::kNoBackend,
            "no backend for " + maker + " cards in this build; use the cpu, or an NVIDIA card"};
}

Rejection for_driver(const Machine &machine, const yoke_card_info &info)
{
    const std::string_view driver = info.driver;
    if (driver == "nvidia") return {};
    if (driver == "nouveau")
        return {Reason::kOtherDriver,
                "the nouveau driver holds the card: install the NVIDIA driver, write 'blacklist "
                "nouveau' to /etc/modprobe.d/blacklist-nouveau.conf, rebuild the initramfs "
                "(update-initramfs -u), restart"};
    if (driver == "vfio-pci")
        return {
            Reason::kOtherDriver,
            format("vfio-pci holds the card for a virtual machine: use it there, or give it back: "
                   "echo %s > /sys/bus/pci/drivers/vfio-pci/unbind; echo > "
                   "/sys/bus/pci/devices/%s/driver_override; echo %s > "
                   "/sys/bus/pci/drivers/nvidia/bind",
                   info.pci, info.pci, info.pci)};
    if (!driver.empty())
        return {Reason::kOtherDriver,
                format("the driver '%s' holds the card, not nvidia: unbind it and load the NVIDIA "
                       "driver",
                       info.driver)};
    if (info.nvml_index >= 0) return {};  // NVML reaches it all the same
    if (machine.driver.empty())
        return {Reason::kNoDriver,
                "no driver holds the card: install the NVIDIA driver; if it is installed, modprobe "
                "nvidia and see dmesg (Secure Boot refuses a module that is not signed)"};
    return {Reason::kNotHeld,
            "the NVIDIA driver is loaded but does not hold the card: it may be too new or too old "
            "for this driver, or have failed; see dmesg | grep -i nvrm"};
}

// The files that a process opens for a card.
Rejection for_files(const Root &root, const Machine &machine, const yoke_card_info &info)
{
    const std::string control = root.path("/dev/nvidiactl");
    if (access(control.c_str(), F_OK) != 0) return {};
    const std::string file = format("/dev/nvidia%d", info.minor);
    for (const std::string &each : {std::string("/dev/nvidiactl"), file}) {
        if (info.minor < 0 && each == file) continue;
        if (access(root.path(each).c_str(), R_OK | W_OK) == 0) continue;
        if (errno == EACCES || errno == EPERM)
            return {Reason::kClosedFile,
                    format("this user may not open %s: give it to the user's group by a udev rule, "
                           "or chmod a+rw %s",
                           each.c_str(), each.c_str())};
        // Outside of containers the driver's own helper makes the file at first use.
        if (errno == ENOENT && !machine.container.empty())
            return {Reason::kMissingFile,
                    format("%s is not in this container: start it with --gpus all, or with the "
                           "card among NVIDIA_VISIBLE_DEVICES",
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
                format("its compute mode is 'prohibited': nvidia-smi -i %s -c 0", info.uuid)};
    const yoke_card_process *holder = holder_of(card);
    // The server of MPS holds an exclusive card for all.
    if (info.compute_mode == YOKE_COMPUTE_EXCLUSIVE && holder && info.mps != 1)
        return {Reason::kHeldAlone,
                format("its compute mode is 'exclusive' and process %d (%s) has it: end that, or "
                       "nvidia-smi -i %s -c 0",
                       holder->pid, holder->visible == 1 ? holder->name : "not visible from here",
                       info.uuid)};
    if (info.kind == YOKE_CARD_MIG || info.mig != 1) return {};
    if (info.mig_instances > 0)
        return {Reason::kPartitioned,
                format("it is partitioned into %d MIG instances: use one of these",
                       info.mig_instances)};
    if (info.mig_instances == 0)
        return {Reason::kNoInstances,
                format("MIG is on and no instance was made: nvidia-smi mig -i %d -cgi 0 -C (the "
                       "whole card), or nvidia-smi -i %d -mig 0",
                       info.nvml_index, info.nvml_index)};
    return {};
}

// NVML failed in a way that CUDA fails in too.
Rejection for_library(const Machine &machine)
{
    const NvmlFailure &failure = machine.nvml.failure;
    if (failure.kind != NvmlFailure::Kind::kNotStarted) return {};
    return {reason_of(failure), text_of(failure, machine)};
}

Rejection rejection_of(const Root &root, const Machine &machine, const Card &card,
                       const Rejection &by_build)
{
    const yoke_card_info &info = card.info;
    if (std::string_view(info.vendor) != "nvidia") return for_other_maker(info);
    if (info.present == 0)
        return {Reason::kGone,
                "the card no longer answers (it has fallen off the bus), which no reset mends: "
                "restart the machine; if it does not come back, check power, cable and seat, and "
                "dmesg for Xid 79"};
    if (info.kind == YOKE_CARD_INTEGRATED) {
        if (serves(root, info)) return by_build;
        return {Reason::kNoCode,
                "this build has no CUDA module with code for this GPU within a processor (Jetson): "
                "yoke doctor names one; until then use the cpu"};
    }
    if (card.rejected != Reason::kNone) return {card.rejected, info.reason};
    for (const Rejection &rejection :
         {for_driver(machine, info), for_library(machine), for_files(root, machine, info),
          for_modes(card), by_build, reject_card(root, machine, info)})
        if (rejection) return rejection;
    return {};
}

}  // namespace

void explain_cards(const Root &root, Machine &machine)
{
    const bool any = std::any_of(machine.cards.begin(), machine.cards.end(), [](const Card &card) {
        return std::string_view(card.info.vendor) == "nvidia";
    });
    const Rejection by_build = any ? reject_driver(root, machine) : Rejection{};
    for (Card &card : machine.cards) reject(card, rejection_of(root, machine, card, by_build));
}

}  // namespace yoke
