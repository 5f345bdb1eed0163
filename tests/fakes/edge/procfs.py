"""Contents of /proc and /dev on a machine with NVIDIA's driver, and of processes that use the cards."""
from schema import Mistake

BANNERS = {
    "proprietary": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Aug 27 17:45:31 UTC 2025",
    "open": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  "
            "(builder@host)  Wed Aug 27 17:45:31 UTC 2025"}
COMPILER = "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)"
# As the module is loaded by default, except that the profiler may be used.
PARAMETERS = {"ResmanDebugLevel": 4294967295, "RmLogonRC": 1, "ModifyDeviceFiles": 1, "DeviceFileUID": 0,
              "DeviceFileGID": 0, "DeviceFileMode": 438, "EnableMSI": 1, "DynamicPowerManagement": 3,
              "EnableGpuFirmware": 18, "RmProfilingAdminOnly": 0}


def write_driver(root, scenario):
    """Writes the loaded module: version, parameters, modules, and cards."""
    driver = scenario["driver"]
    version = driver["module_version"]
    root.raw("/proc/driver/nvidia/version",
             f"{BANNERS[driver['flavor']].format(version=version)}\n{COMPILER}\n")
    lines = [f"{name}: {value}" for name, value in {**PARAMETERS, **driver.get("params", {})}.items()]
    root.text("/proc/driver/nvidia/params", "\n".join(lines))
    root.text("/sys/module/nvidia/version", version)
    modules = ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
    for module in modules:
        root.text(f"/sys/module/{module}/initstate", "live")
        root.text(f"/sys/module/{module}/refcnt", 0)
    root.text("/proc/modules", "\n".join(f"{name} 1048576 0 - Live 0x0000000000000000 (OE)" for name in modules))
    for gpu in scenario["gpus"]:
        if gpu["driver"] == "nvidia":
            write_card(root, gpu, driver)


def write_card(root, gpu, driver):
    firmware = version_of_firmware(driver)
    place = f"/proc/driver/nvidia/gpus/{gpu['pci']}"
    root.raw(f"{place}/information",
             f"Model: \t\t {gpu['name']}\nIRQ:   \t\t {64 + gpu['minor']}\nGPU UUID: \t {gpu['uuid']}\n"
             f"Video BIOS: \t {gpu.get('vbios', '??.??.??.??.??')}\nBus Type: \t PCIe\nDMA Size: \t 47 bits\n"
             f"DMA Mask: \t 0x7fffffffffff\nBus Location: \t {gpu['pci']}\nDevice Minor: \t {gpu['minor']}\n"
             f"GPU Firmware: \t {firmware}\nGPU Excluded:\t No\n")
    asleep = gpu["runtime_status"] == "suspended"
    root.raw(f"{place}/power",
             f"Runtime D3 status:          {'Enabled (fine-grained)' if asleep else 'Disabled by default'}\n"
             f"Video Memory:               {'Off' if asleep else 'Active'}\n")
    root.raw(f"/dev/nvidia{gpu['minor']}", "")


def version_of_firmware(driver):
    return driver["module_version"] if driver["flavor"] == "open" else "N/A"


def write_device_files(root, scenario):
    if not any(gpu["driver"] == "nvidia" for gpu in scenario["gpus"]):
        return
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        root.raw(f"/dev/{name}", "")
    for gpu in scenario["gpus"]:
        for instance in gpu.get("mig_instances", []):
            number = instance["gpu_instance"]
            access = f"/proc/driver/nvidia/capabilities/gpu{gpu['minor']}/mig/gi{number}"
            minor = 3 + gpu["minor"] * 100 + number * 9
            for path, shift in ((f"{access}/access", 0), (f"{access}/ci0/access", 1)):
                root.raw(path, f"DeviceFileMinor: {minor + shift}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
                root.raw(f"/dev/nvidia-caps/nvidia-cap{minor + shift}", "")


def group_of(process):
    """Returns the line of /proc/PID/cgroup: a container's scope, or a session of a user."""
    container = process.get("container")
    return f"0::/{f'system.slice/docker-{container}' if container else 'user.slice/user-1000.slice/session-3'}.scope"


def write_process(root, process, users):
    user = process.get("user", "root")
    if user not in users:
        raise Mistake(f"process {process['pid']} is of the user {user}, who is not among users: {', '.join(users)}")
    place, name = f"/proc/{process['pid']}", process.get("name", "python")
    root.text(f"{place}/comm", name[:15])
    root.text(f"{place}/cgroup", group_of(process))
    root.raw(f"{place}/cmdline", process.get("command", name).replace(" ", "\0") + "\0")
    ids = "\t".join([str(users[user])] * 4)
    root.raw(f"{place}/status",
             f"Name:\t{name[:15]}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{process['pid']}\n"
             f"Pid:\t{process['pid']}\nPPid:\t1\nTracerPid:\t0\nUid:\t{ids}\nGid:\t{ids}\nThreads:\t8\n")


def write_users(root, users):
    lines = [f"{name}:x:{number}:{number}::{'/root' if not number else f'/home/{name}'}:/bin/bash"
             for name, number in users.items()]
    root.text("/etc/passwd", "\n".join(lines))


def write_probes(root, probes):
    """Writes lines "0.h2d 2.3e10": results of probes on such a machine."""
    def lines(prefix, value):
        if isinstance(value, dict):
            for name, each in value.items():
                yield from lines(f"{prefix}.{name}", each)
        else:
            yield f"{prefix} {value}"
    root.text("/yoke/probes", "\n".join(line for card, value in probes.items() for line in lines(card, value)))


def write_integrated(root, board):
    """Writes the device tree's entries for a chip with an integrated GPU."""
    root.raw("/proc/device-tree/model", board["name"] + "\0")
    root.raw("/proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,p3701-0005\0nvidia,tegra234\0")
    root.raw("/etc/nv_tegra_release", "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, "
             "DATE: Wed Jan  8 01:49:37 UTC 2025\n# KERNEL_VARIANT: oot\n")
    place = board.get("platform", "/sys/devices/platform/bus@0/17000000.gpu")
    root.text(f"{place}/load", board.get("utilization", 0) * 10)
    frequency = f"{place}/devfreq/17000000.gpu"
    root.text(f"{frequency}/cur_freq", board.get("sm_clock", 306) * 10**6)
    root.text(f"{frequency}/max_freq", board.get("sm_clock_max", 1300) * 10**6)
    root.link("/sys/class/devfreq/17000000.gpu", frequency)
    root.raw("/dev/nvhost-gpu", "")


def write(root, scenario):
    # The driver of Windows serves Linux within it without a trace in /proc.
    if scenario["driver"]["loaded"] and scenario["driver"].get("in_kernel", True):
        write_driver(root, scenario)
        write_device_files(root, scenario)
    users = {"root": 0, "alice": 1000, "bob": 1001, **scenario.get("users", {})}
    write_users(root, users)
    for gpu in scenario["gpus"]:
        for process in gpu["processes"]:
            if process.get("visible", True):
                write_process(root, process, users)
    if "probes" in scenario:
        write_probes(root, scenario["probes"])
    if "integrated" in scenario:
        write_integrated(root, scenario["integrated"])
