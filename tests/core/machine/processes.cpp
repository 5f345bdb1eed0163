// Facts from /proc and /dev: the driver, the machine's kind, processes, Jetsons; and the reasons drawn from these
// facts.
#include "core/machine/facts.h"
#include "core/machine/nvidia_module.h"
#include "core/machine/proc.h"
#include "core/machine/sysfs.h"
#include "core/machine/vendor.h"
#include "tests/core/fresh_process.h"
#include "tests/core/tree.h"

#include <sys/stat.h>
#include <unistd.h>

namespace yoke {
namespace {

using test::Tree;

class Proc : public Tree {
protected:
    std::string fact(void (*read)(const Root &, Machine &), const char *key)
    {
        Machine machine;
        read(root, machine);
        for (const NamedFact &fact : named_facts())
            if (std::string_view(fact.key) == key) return fact.text(machine);
        return "there is no such fact";
    }
};

TEST_F(Proc, TheDriversVersionAndFlavorStandInItsBanner)
{
    EXPECT_EQ(fact(read_driver, "driver"), "");
    write(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (a@b)  "
        "Wed Aug 27 17:45:31 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
    EXPECT_EQ(fact(read_driver, "driver"), "580.82.07");
    EXPECT_EQ(fact(read_driver, "driver_flavor"), "open");
    write("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC "
          "2024\n");
    EXPECT_EQ(fact(read_driver, "driver"), "470.256.02");
    EXPECT_EQ(fact(read_driver, "driver_flavor"), "proprietary");
}

TEST_F(Proc, ContainersAndVirtualMachinesAreToldByTheirMarks)
{
    const std::string id(64, 'a');
    EXPECT_EQ(fact(read_place, "container"), "");
    EXPECT_EQ(fact(read_place, "virtual_machine"), "");
    // A shell of the engine's own service is in no container.
    write("/proc/self/cgroup", "0::/system.slice/docker.service\n");
    EXPECT_EQ(fact(read_place, "container"), "");
    write("/proc/self/cgroup", "0::/system.slice/docker-" + id + ".scope\n");
    EXPECT_EQ(fact(read_place, "container"), "docker");
    write("/proc/self/cgroup", "0::/kubepods.slice/pod1/cri-containerd-" + id + ".scope\n");
    EXPECT_EQ(fact(read_place, "container"), "kubernetes");
    write("/run/.containerenv", "");
    EXPECT_EQ(fact(read_place, "container"), "podman");
    write("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    EXPECT_EQ(fact(read_place, "virtual_machine"), "");  // bare metal
    write("/proc/cpuinfo", "flags\t\t: fpu hypervisor\n");
    EXPECT_EQ(fact(read_place, "virtual_machine"), "amazon");
    write("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    EXPECT_EQ(fact(read_place, "virtual_machine"), "kvm");
    write("/proc/version", "Linux version 6.6.87.2-microsoft-standard-WSL2\n");
    EXPECT_EQ(fact(read_place, "virtual_machine"), "wsl");
}

TEST(Container, ItsIdIsFoundInEveryEnginesGroups)
{
    const std::string id(64, '4'), other(64, 'b');
    struct Case {
        std::string cgroups, id;
    };
    for (const Case &c : {
             Case{"0::/user.slice/user-1000.slice/session-3.scope", ""},
             Case{"", ""},
             Case{"12:devices:/docker/" + id + "\n0::/", id},
             Case{"0::/system.slice/docker-" + id + ".scope", id},
             Case{"0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + id,
                  id},
             Case{"0::/machine.slice/libpod-" + id + ".scope/container", id},
             Case{"0::/kubepods/besteffort/pod1/" + id, id},
             Case{"0::/docker/" + other + "/docker/" + id, id},
             Case{"0::/lxc.payload.trainer/system.slice", "trainer"},
             Case{"4:cpu:/lxc/box\n", "box"},
             Case{"0::/" + std::string(65, 'a'), ""},
             Case{"0::/system.slice/docker-container-3.scope", "container-3"},
             Case{"0::/system.slice/cri-containerd.service", ""},
         })
        EXPECT_EQ(container_of(c.cgroups), c.id) << c.cgroups;
}

TEST(Users, NamesComeFromThePasswordFileAndElseTheNumberStands)
{
    const char *passwd =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nalice:x:1000:1000::/home/a:/bin/sh";
    EXPECT_EQ(user_name(passwd, 0), "root");
    EXPECT_EQ(user_name(passwd, 1000), "alice");
    EXPECT_EQ(user_name(passwd, 100), "100");
    EXPECT_EQ(user_name("", 7), "7");
}

yoke_card_process process(int pid, int64_t memory)
{
    yoke_card_process made{};
    made.pid = pid;
    made.compute = 1;
    made.memory_used = memory;
    return made;
}

Card nvidia_card(const char *pci = "0000:65:00.0")
{
    Card card = unknown_card();
    card.info.kind = YOKE_CARD_GPU;
    card.info.present = 1;
    put(card.info.vendor, "nvidia");
    put(card.info.driver, "nvidia");
    put(card.info.uuid, "GPU-1");
    put(card.info.pci, pci);
    card.info.minor = card.info.nvml_index = 0;
    return card;
}

TEST_F(Proc, ProcessesThatCannotBeSeenLeaveHiddenMemory)
{
    write("/etc/passwd", "alice:x:1000:1000::/home/a:/bin/sh\n");
    write("/proc/41/cmdline", std::string("/usr/bin/python3\0train.py\0", 26));
    write("/proc/41/status", "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\n");
    write("/proc/41/cgroup", "0::/user.slice\n");
    Machine machine;
    machine.cards = {nvidia_card()};
    Card &card = machine.cards[0];
    card.processes = {process(41, 3000), process(99, 4000)};
    card.info.process_count = 2;
    card.info.memory_used = 8000;
    card.info.memory_reserved = 100;
    read_processes(root, machine);
    EXPECT_STREQ(card.processes[0].name, "python3");
    EXPECT_STREQ(card.processes[0].user, "alice");
    EXPECT_EQ(card.processes[0].visible, 1);
    EXPECT_EQ(card.processes[1].visible, 0);
    EXPECT_EQ(card.info.hidden_processes, 1);
    EXPECT_EQ(card.info.hidden_memory, 5000);
    card.info.memory_reserved = -1;
    read_processes(root, machine);
    EXPECT_EQ(card.info.hidden_memory, 0);  // within the driver's own share
    card.info.memory_used = 5'000'000'000;
    read_processes(root, machine);
    EXPECT_EQ(card.info.hidden_memory, 4'999'997'000);
}

TEST_F(Proc, AProcessThatWaitsInTheKernelIsNotAskedForItsArguments)
{
    write("/proc/41/cmdline", std::string("/usr/bin/python3\0train.py\0", 26));
    write("/proc/41/comm", "waiting\n");
    write("/proc/41/status", "Name:\twaiting\nState:\tD (disk sleep)\nUid:\t0\t0\t0\t0\n");
    Machine machine;
    machine.cards = {nvidia_card()};
    machine.cards[0].processes = {process(41, 3000)};
    read_processes(root, machine);
    EXPECT_STREQ(machine.cards[0].processes[0].name, "waiting");
    write("/proc/41/status", "Name:\twaiting\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\n");
    read_processes(root, machine);
    EXPECT_STREQ(machine.cards[0].processes[0].name, "python3");
}

TEST_F(Proc, AStrangerWithTheNumberOfAHostsProcessIsNotTakenForIt)
{
    link("/proc/self/ns/pid", "pid:[4026532001]");  // not the first namespace
    write("/proc/41/comm", "bash\n");
    link("/proc/41/fd/0", "/dev/pts/0");
    write("/proc/42/comm", "python\n");
    link("/proc/42/fd/3", "/dev/nvidia0");
    Machine machine;
    machine.cards = {nvidia_card()};
    machine.cards[0].processes = {process(41, 1), process(42, 1)};
    machine.cards[0].info.process_count = 2;
    read_processes(root, machine);
    EXPECT_EQ(machine.cards[0].processes[0].visible, 0);
    EXPECT_STREQ(machine.cards[0].processes[0].name, "");
    EXPECT_EQ(machine.cards[0].processes[1].visible, 1);
}

TEST_F(Proc, AnMpsServerAmongTheProcessesMarksItsCard)
{
    write("/proc/41/comm", "nvidia-cuda-mps-server\n");
    Machine machine;
    machine.cards = {nvidia_card()};
    machine.cards[0].processes = {process(41, 1)};
    machine.cards[0].info.process_count = 1;
    read_processes(root, machine);
    EXPECT_EQ(machine.cards[0].info.mps, 1);
}

TEST_F(Proc, ACardThatTheBusLostIsToldAsGone)
{
    device("pci0000:60/0000:60:01.0/0000:61:00.0", "10de", "2330", "030200");
    for (const char *address : {"0000:61:00.0", "0000:62:00.0"})
        write(std::string("/proc/driver/nvidia/gpus/") + address + "/information",
              "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-\?\?\?\?-\?\?\?\?\nDevice Minor: \t 1\n");
    Machine machine;
    machine.cards = read_pci_cards(root);
    add_vanished_cards(root, machine);
    ASSERT_EQ(machine.cards.size(), 2u);
    EXPECT_STREQ(machine.cards[1].info.pci, "0000:62:00.0");
    EXPECT_STREQ(machine.cards[1].info.name, "NVIDIA H100");
    EXPECT_STREQ(machine.cards[1].info.uuid, "");
    EXPECT_EQ(machine.cards[1].info.present, 0);
    reject_cards(root, machine);
    EXPECT_NE(std::string(machine.cards[1].info.reason).find("no longer answers"),
              std::string::npos);
}

TEST_F(Proc, AJetsonIsAnIntegratedCardWithTheProcessorsMemory)
{
    write("/proc/device-tree/model", std::string("NVIDIA Jetson AGX Orin\0", 23));
    write("/proc/device-tree/compatible", std::string("nvidia,p3737\0nvidia,tegra234\0", 29));
    write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\n");
    Machine machine;
    add_integrated_card(root, machine);
    EXPECT_EQ(machine.cards.size(), 0u);  // without a GPU's file it is a board of another kind
    write("/dev/nvhost-gpu", "");
    add_integrated_card(root, machine);
    ASSERT_EQ(machine.cards.size(), 1u);
    const yoke_card_info &info = machine.cards[0].info;
    EXPECT_EQ(info.kind, YOKE_CARD_INTEGRATED);
    EXPECT_STREQ(info.name, "NVIDIA Jetson AGX Orin");
    EXPECT_EQ(info.cc_major, 8);
    EXPECT_EQ(info.cc_minor, 7);
    EXPECT_EQ(info.memory_total, 1000 * 1024);
    EXPECT_EQ(info.memory_free, 400 * 1024);
    reject_cards(root, machine);
    EXPECT_NE(std::string(info.reason).find("Jetson"), std::string::npos);
}

// ---- Reasons --------------------------------------------------------------------------------------------------------

struct Case {
    const char *part;  // part of the reason; "" without a reason
    void (*change)(Machine &, yoke_card_info &);
};

const Case kReasons[] = {
    {"", [](Machine &, yoke_card_info &) {}},
    {"", [](Machine &, yoke_card_info &info) { info.asleep = 1; }},
    {"no backend of this build", [](Machine &, yoke_card_info &info) { put(info.vendor, "amd"); }},
    {"no backend of this build", [](Machine &, yoke_card_info &info) { put(info.vendor, "1a03"); }},
    {"a reset does not help: restart the machine",
     [](Machine &, yoke_card_info &info) { info.present = 0; }},
    {"blacklist nouveau", [](Machine &, yoke_card_info &info) { put(info.driver, "nouveau"); }},
    {"echo 0000:65:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind",
     [](Machine &, yoke_card_info &info) { put(info.driver, "vfio-pci"); }},
    {"the driver 'pciback' holds",
     [](Machine &, yoke_card_info &info) { put(info.driver, "pciback"); }},
    {"modprobe nvidia",
     [](Machine &, yoke_card_info &info) { put(info.driver, ""), info.nvml_index = -1; }},
    {"loaded but does not hold",
     [](Machine &machine, yoke_card_info &info) {
         put(info.driver, "");
         info.nvml_index = -1;
         machine.driver = "580.82.07";
     }},
    {"NVML does not start: out of memory (code 20)",
     [](Machine &machine, yoke_card_info &) {
         machine.nvml.failure.kind = NvmlFailure::Kind::kNotStarted;
         machine.nvml.failure.code = 20;
     }},
    {"", [](Machine &machine,
            yoke_card_info &) { machine.nvml.failure.kind = NvmlFailure::Kind::kNoLibrary; }},
    {"nvidia-smi -i GPU-1 -c 0",
     [](Machine &, yoke_card_info &info) { info.compute_mode = YOKE_COMPUTE_PROHIBITED; }},
    {"", [](Machine &, yoke_card_info &info) { info.compute_mode = YOKE_COMPUTE_EXCLUSIVE; }},
    {"process 7 (not visible from here) uses the GPU",
     [](Machine &machine, yoke_card_info &info) {
         info.compute_mode = YOKE_COMPUTE_EXCLUSIVE;
         machine.cards[0].processes = {process(7, 1)};
     }},
    {"",
     [](Machine &machine, yoke_card_info &info) {
         info.compute_mode = YOKE_COMPUTE_EXCLUSIVE;
         info.mps = 1;
         machine.cards[0].processes = {process(7, 1)};
     }},
    {"into 7 MIG instances",
     [](Machine &, yoke_card_info &info) { info.mig = 1, info.mig_instances = 7; }},
    {"-cgi 0 -C", [](Machine &, yoke_card_info &info) { info.mig = 1, info.mig_instances = 0; }},
};

TEST_F(Proc, EveryReasonNamesWhatToDo)
{
    for (const Case &c : kReasons) {
        Machine machine;
        machine.cards = {nvidia_card()};
        c.change(machine, machine.cards[0].info);
        reject_cards(root, machine);
        const std::string reason = machine.cards[0].info.reason;
        if (*c.part)
            EXPECT_NE(reason.find(c.part), std::string::npos) << c.part << " is not in: " << reason;
        else
            EXPECT_EQ(reason, "");
    }
}

TEST_F(Proc, AClosedFileOfTheCardIsAReason)
{
    write("/dev/nvidiactl", "");
    write("/dev/nvidia0", "");
    chmod(root.path("/dev/nvidiactl").c_str(), 0666);
    chmod(root.path("/dev/nvidia0").c_str(), 0600);
    chmod(root.prefix.c_str(), 0755);
    const auto reason = [&] {
        Machine machine;
        machine.cards = {nvidia_card()};
        reject_cards(root, machine);
        return std::string(machine.cards[0].info.reason);
    };
    EXPECT_EQ(reason(), "");
    EXPECT_TRUE(test::passes_in_child([&] {
        // Root may open every file.
        if (geteuid() != 0 || setuid(65534) != 0) return;
        EXPECT_NE(reason().find("may not open /dev/nvidia0"), std::string::npos) << reason();
    }));
}

TEST_F(Proc, ACardWhoseFileAContainerLacksIsNotItsOwn)
{
    write("/dev/nvidiactl", "");
    Machine machine;
    machine.cards = {nvidia_card()};
    reject_cards(root, machine);
    EXPECT_STREQ(machine.cards[0].info.reason, "");  // made at first use
    machine.container = "docker";
    reject_cards(root, machine);
    EXPECT_NE(std::string(machine.cards[0].info.reason).find("--gpus all"), std::string::npos);
}

}  // namespace
}  // namespace yoke
