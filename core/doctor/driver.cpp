// Checks 1 to 8 and 45: the kernel's side of the driver: there, loaded, of one version, open to this user.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"

#include <cstring>

namespace yoke::doctor {

namespace {

constexpr Packages kDriver = {"nvidia-driver", "nvidia-driver-580-server-open", "akmod-nvidia",
                              "nvidia-open nvidia-utils"};

bool asks_for_cuda(const Facts &facts)
{
    return facts.variable("YOKE_DEVICE").find("cuda") != std::string::npos ||
           facts.variable("YOKE_PLATFORMS").find("cuda") != std::string::npos;
}

// Returns a text with the other cards in the machine.
std::string others(const Facts &facts)
{
    std::string text;
    for (const Card &other : facts.machine.cards) {
        const yoke_card_info &info = other.info;
        text += format("; there is %s%s%s", info.name[0] ? info.name : info.vendor,
                       info.pci[0] ? " at " : "", info.pci);
    }
    return text;
}

// Returns the driver's part of NVML's version, which may carry CUDA's major version in front: "13.580.82.07".
std::string driver_part(const std::string &nvml)
{
    const size_t dot = nvml.find('.');
    return dot != nvml.npos && dot <= 2 ? nvml.substr(dot + 1) : nvml;
}

}  // namespace

Finding check_gpu_present(const Facts &facts)
{
    if (!gpus(facts).empty())
        return ok(format("%zu NVIDIA GPUs, the first is %s", gpus(facts).size(),
                         label(facts, gpus(facts)[0]).c_str()));
    const int status = asks_for_cuda(facts) ? kFail : kWarn;
    for (const Dock &dock : facts.docks)
        if (dock.authorized == "0")
            return found(status,
                         "no NVIDIA device (PCI vendor 10de) is on the PCI bus, and the dock " +
                             dock.name + " is not authorized",
                         authorize(dock));
    std::string evidence = "no NVIDIA device (PCI vendor 10de) is on the PCI bus" + others(facts);
    if (status == kFail)
        evidence += facts.is_set("YOKE_DEVICE")
                        ? "; YOKE_DEVICE is '" + facts.variable("YOKE_DEVICE") + "'"
                        : "; YOKE_PLATFORMS is '" + facts.variable("YOKE_PLATFORMS") + "'";
    if (is_wsl(facts))
        return found(status, evidence,
                     "in Windows: install NVIDIA's driver\n"
                     "in Windows: wsl --update, then wsl --shutdown");
    if (facts.is_laptop)
        return found(
            status, evidence,
            "lspci -d 10de: # if nothing is printed: switch the GPU on in the BIOS (\"hybrid\" or \"discrete\" graphics), or wake it: echo 1 | sudo tee /sys/bus/pci/rescan\n"
            "an external GPU: plug its cable in again, and see boltctl list");
    return found(
        status, evidence,
        "lspci -d 10de: # if nothing is printed: power off, reseat the card and its power cables\n"
        "in the BIOS switch on the slot, \"Above 4G Decoding\" and Resizable BAR; in a virtual machine pass the GPU through");
}

Finding check_driver_bound(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const std::string driver = info.driver;
        if (driver == "nouveau")
            all.add(
                kFail, label(facts, i) + " is held by nouveau",
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf\n" +
                    rebuild_initramfs(facts) + "\n" + install(facts, kDriver) + "\nsudo reboot",
                i);
        else if (driver == "vfio-pci")
            all.add(
                kWarn, label(facts, i) + " is held by vfio-pci, for a virtual machine",
                format(
                    "echo | sudo tee /sys/bus/pci/devices/%s/driver_override # else vfio-pci binds the card again\n"
                    "echo %s | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind\n"
                    "echo %s | sudo tee /sys/bus/pci/drivers/nvidia/bind",
                    info.pci, info.pci, info.pci),
                i);
    }
    return all.or_ok("no GPU is held by nouveau or vfio-pci");
}

Finding check_module_loaded(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    if (is_wsl(facts)) return ok("the driver is Windows' driver");
    if (facts.modules.count("nvidia") || facts.modules.count("nvgpu") ||
        !facts.machine.driver.empty())
        return ok("nvidia " + facts.machine.driver + " is loaded");
    if (facts.modules.count("nouveau")) return skip("nouveau is loaded in its place (check 2)");
    if (facts.in_container())
        return found(kFail, "the host of this container has not loaded the module nvidia",
                     "on the host: sudo modprobe nvidia");
    if (facts.dkms.empty())
        return found(kFail, "the module nvidia is not loaded, and DKMS does not have its source",
                     install(facts, kDriver) + "\nsudo modprobe nvidia");
    if (facts.secure_boot)
        return found(
            kFail,
            "the module nvidia is not loaded; Secure Boot is on and accepts only signed modules; DKMS has nvidia " +
                facts.dkms.back(),
            std::string("sudo mokutil --import ") +
                (family_of(facts) == Family::kUbuntu ? "/var/lib/shim-signed/mok/MOK.der"
                                                     : "/var/lib/dkms/mok.pub") +
                "\nsudo reboot # choose \"Enroll MOK\" during the restart");
    return found(kFail,
                 "the module nvidia is not loaded; DKMS has nvidia " + facts.dkms.back() +
                     ", the kernel is " + facts.kernel,
                 "sudo dkms autoinstall -k " + facts.kernel + "\nsudo modprobe nvidia");
}

Finding check_driver_library_match(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    const std::string &module = facts.machine.driver;
    std::string library = driver_part(facts.machine.nvml.version);
    const LibraryCopy *cuda = facts.library("cuda");
    if (library.empty() && cuda && cuda->version.find('.') != std::string::npos)
        library = cuda->version;
    if (module.empty()) return skip("the kernel module is not loaded (check 3)");
    constexpr int kMismatch = 18;
    const bool refused = nvml_code(facts) == kMismatch;
    if (!refused && (library.empty() || library == module))
        return ok("kernel module and libraries are " + module);
    const std::string hold =
        family_of(facts) == Family::kFedora ? "sudo dnf versionlock add '*nvidia*'"
        : family_of(facts) == Family::kArch ? "add IgnorePkg = nvidia* to /etc/pacman.conf"
                                            : "sudo apt-mark hold 'nvidia-*' 'libnvidia-*'";
    return found(kFail,
                 "the kernel module is " + module + ", the libraries are " +
                     (library.empty() || library == module
                          ? "of another version (" + nvml_failure_text(facts.machine) + ")"
                          : library),
                 "sudo reboot # loads the module that was installed with the libraries\n" + hold +
                     " # so that updates wait for a maintenance window");
}

Finding check_cuda_library(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    if (const LibraryCopy *cuda = facts.library("cuda")) return ok("it is " + cuda->path);
    if (facts.machine.driver.empty()) return skip("no driver is loaded (check 3)");
    if (facts.in_container())
        return found(
            kFail,
            "the driver is loaded, but the container has no libcuda.so.1; NVIDIA_DRIVER_CAPABILITIES is '" +
                facts.variable("NVIDIA_DRIVER_CAPABILITIES") + "'",
            "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …");
    return found(kFail, "the driver is loaded, but no folder of the loader has libcuda.so.1",
                 install(facts, {"libcuda1", "libnvidia-compute-580", "xorg-x11-drv-nvidia-cuda",
                                 "nvidia-utils"}));
}

Finding check_stub_library(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    const LibraryCopy *cuda = facts.library("cuda");
    if (!cuda) return skip("there is no libcuda.so.1 (check 5)");
    if (cuda->folder().find("/stubs") == std::string::npos) return ok("it is " + cuda->path);
    const char *variable = facts.variable("YOKE_CUDA_LIB_PATH").find("/stubs") != std::string::npos
                               ? "YOKE_CUDA_LIB_PATH"
                               : "LD_LIBRARY_PATH";
    return found(
        kFail,
        cuda->path +
            " is found first, but it is only for linking and answers every call with error 34",
        format("export %s=$(printf %%s \"$%s\" | tr : '\\n' | grep -v /stubs | paste -sd:)",
               variable, variable));
}

// Checks the single device file of Linux within Windows, for all cards.
static Finding check_windows_node(const Facts &facts)
{
    if (facts.has_windows_gpu) return ok("/dev/dxg connects to Windows' driver");
    return found(kFail, "/dev/dxg is missing: Windows shows this Linux no GPU",
                 "in Windows: wsl --update, then wsl --shutdown");
}

Finding check_device_nodes(const Facts &facts)
{
    if (const auto none = no_gpus(facts)) return skip(*none);
    if (is_wsl(facts)) return check_windows_node(facts);
    if (facts.machine.driver.empty()) return skip("no driver is loaded (check 3)");
    Findings all;
    for (const auto &[path, node] : facts.nodes)
        if (!node.granted)
            all.add(
                kFail, path + " is " + node.mode + ", which this user may not open",
                "sudo usermod -aG video \"$USER\" # then log in again\n"
                "echo 'KERNEL==\"nvidia*\", MODE=\"0666\"' | sudo tee /etc/udev/rules.d/70-nvidia.rules && sudo udevadm trigger");
    std::vector<std::string> missing = missing_nodes(facts);
    // Without any there never was a GPU for the container: check 10.
    if (facts.in_container() && facts.nodes.empty()) missing.clear();
    const bool needs_control = !facts.in_container() && !working_gpus(facts).empty();
    if (needs_control && !facts.nodes.count("/dev/nvidiactl")) missing.push_back("/dev/nvidiactl");
    for (const std::string &path : missing)
        all.add(kFail, path + " is missing",
                facts.in_container() ? kNewContainer : "sudo nvidia-modprobe -c 0 -u");
    if (facts.in_container()) return all.or_ok("the existing device files may be opened");
    return all.or_ok(format("%zu device files, all open to this user", facts.nodes.size()));
}

Finding check_unified_memory(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    if (facts.in_container()) return skip("the host of this container loads the modules");
    if (is_wsl(facts)) return skip("the driver is Windows' driver, which needs no nvidia_uvm");
    if (facts.modules.count("nvgpu") && !facts.modules.count("nvidia"))
        return skip("an integrated GPU has no nvidia_uvm");
    if (!facts.modules.count("nvidia_uvm"))
        return found(kWarn, "the module nvidia_uvm is not loaded; CUDA cannot start without it",
                     "sudo modprobe nvidia_uvm\nsudo nvidia-modprobe -u -c 0");
    const std::string log = facts.log.value_or("");
    if (log.find("PM: suspend exit") == log.npos) return ok("nvidia_uvm is loaded");
    const auto kept = facts.driver_parameters.find("PreserveVideoMemoryAllocations");
    if (kept != facts.driver_parameters.end() && kept->second == "1")
        return ok("nvidia_uvm is loaded, and video memory is preserved over a suspend");
    return found(
        kWarn,
        "the machine was suspended since it started, and video memory is not preserved: CUDA may fail with error 999",
        "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm\n"
        "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1' | sudo tee /etc/modprobe.d/nvidia-suspend.conf\n"
        "sudo systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate");
}

Finding check_mixed_drivers(const Facts &facts)
{
    if (facts.runfile.empty() && facts.packages.empty())
        return skip("no sign of an installed driver");
    const std::string names = joined(facts.packages, ", ", [](const auto &package) {
        return package.first + " (" + package.second + ")";
    });
    if (facts.runfile.empty()) return ok("the driver came in packages: " + names);
    if (facts.packages.empty())
        return ok("the driver came with NVIDIA's installer: " + facts.runfile);
    return found(
        kFail, facts.runfile + " is from NVIDIA's installer, but there are packages, too: " + names,
        "sudo nvidia-uninstall\n" +
            (family_of(facts) == Family::kFedora || family_of(facts) == Family::kArch
                 ? install(facts, kDriver)
                 : "sudo apt-get install --reinstall " +
                       std::string(facts.packages.begin()->first)) +
            "\nsudo reboot");
}

}  // namespace yoke::doctor
