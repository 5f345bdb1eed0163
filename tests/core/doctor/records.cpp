// Recordings: kept parts of the kernel's log and of names, and a card's finding with few known facts.
#include "core/doctor/checks.h"
#include "core/doctor/log.h"
#include "core/doctor/redact.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>

namespace yoke::doctor {
namespace {

TEST(DoctorLog, OnlyTheKernelsLinesAreKept)
{
    EXPECT_EQ(of_interest("Nov 22 01:02:03 host sudo: a : COMMAND=nvidia-smi key\n"
                          "Nov 22 01:02:03 host kernel: nvidia 0000:43:00.0: enabling\n"
                          "2026-11-22T01:02:03.5+00:00 host app[7]: nvidia token\n"
                          "nvidia-nvlink: up\nusb 1-1: new device\n"
                          "Kernel command line: nvidia-drm.modeset=1\naudit: comm=nvidia-smi\n"),
              "Nov 22 01:02:03 host kernel: nvidia 0000:43:00.0: enabling\nnvidia-nvlink: up\n");
}

TEST(DoctorLog, ProgramsInXidsAreMaskedToTheNextComma)
{
    EXPECT_EQ(of_interest("NVRM: Xid (PCI:0000:43:00): 13, pid=8, name=my job, Ch 1\n"
                          "NVRM: Xid (PCI:0000:43:00): 31, pid=8, name=my job\n"),
              "NVRM: Xid (PCI:0000:43:00): 13, pid=8, name=PROGRAM, Ch 1\n"
              "NVRM: Xid (PCI:0000:43:00): 31, pid=8, name=PROGRAM\n");
}

TEST(DoctorLog, LinesOfEarlierStartsAreDropped)
{
    EXPECT_EQ(since_start("NVRM: Xid old\n[0.0] Linux version 6.1\nNVRM: Xid 2\n"
                          "[0.0] Linux version 6.2\nnvidia: new\n"),
              "[0.0] Linux version 6.2\nnvidia: new\n");
    EXPECT_EQ(since_start("NVRM: Xid of who knows when\n"), "");
}

TEST(DoctorLog, RecordsThatAProgramWroteAreNotOfTheKernel)
{
    EXPECT_EQ(text_of_record("6,1234,5678,-;nvidia: up\n SUBSYSTEM=pci\n"), "nvidia: up\n");
    EXPECT_EQ(text_of_record("30,1234,5678,-;systemd[1]: nvidia\n"), "");
    EXPECT_EQ(text_of_record("no record"), "");
}

TEST(DoctorLog, OfALongFileTheEndIsRead)
{
    char path[] = "/tmp/yoke-log-XXXXXX";
    const int handle = mkstemp(path);
    ASSERT_GE(handle, 0);
    ASSERT_EQ(write(handle, "0123456789", 10), 10);
    close(handle);
    EXPECT_EQ(RecordedRoot::end_of(path, 4), "6789");
    EXPECT_EQ(RecordedRoot::end_of(path, 40), "0123456789");
    unlink(path);
    EXPECT_EQ(RecordedRoot::end_of(path, 4), "");
}

TEST(DoctorRedact, FoldersThatAreAlikeEverywhereKeepTheirNames)
{
    Redactor redactor(Machine(), "cuda-box", {"nvidia", "cuda"});
    EXPECT_EQ(redactor.patterns("/usr/local/cuda/lib64:/opt/cuda/lib of nvidia"),
              "/usr/local/cuda/lib64:/opt/user-1/lib of user-0");
    EXPECT_EQ(redactor.numbers("ID=nvidia /home/bob/x"), "ID=nvidia /home/user-2/x");
    EXPECT_EQ(redacted_file(redactor, "/proc/modules", "nvidia 1 0\n"), "nvidia 1 0\n");
    EXPECT_EQ(redacted_file(redactor, "/etc/passwd", "nvidia:x:1:1:::\n"), "user-0:x:1:1:::\n");
}

Machine machine_of(const char *program, const char *user)
{
    Machine machine;
    Card card = unknown_card();
    yoke_card_process process{};
    put(process.name, program);
    put(process.user, user);
    card.processes = {process};
    machine.cards = {card};
    return machine;
}

TEST(DoctorRedact, AContainersIdIsReplacedInTheGroupsOfEveryEngine)
{
    const std::string id(64, '4'), place = "/proc/7/cgroup";
    Redactor redactor(Machine(), "");
    EXPECT_EQ(redacted_file(redactor, place, "0::/system.slice/docker-" + id + ".scope\n"),
              "0::/system.slice/docker-container-0.scope\n");
    EXPECT_EQ(redacted_file(redactor, place, "0::/machine.slice/libpod-" + id + ".scope/x\n"),
              "0::/machine.slice/libpod-container-0.scope/x\n");
    EXPECT_EQ(redacted_file(redactor, "/proc/self/cgroup",
                            "0::/kubepods-pod5c89852c_d268_c3f3_1b07_005d5ae1dc3f.slice/"
                            "cri-containerd-" +
                                id + ".scope\n"),
              "0::/kubepods-podUUID-0.slice/cri-containerd-container-0.scope\n");
    EXPECT_EQ(redactor.name(id), "container-0");
    const std::string longer(65, '4');
    EXPECT_EQ(redactor("docker-" + longer), "docker-" + longer);
}

TEST(DoctorRedact, UsersHaveFoldersInSharedOnesToo)
{
    Redactor redactor(Machine(), "node-17", {"carol", "nvidia", "local"});
    EXPECT_EQ(redactor.patterns("/var/scratch/carol/lib:/usr/local/nvidia/carol.so"),
              "/var/scratch/user-0/lib:/usr/local/nvidia/carol.so");
    EXPECT_EQ(redactor("/run/node-17/x of carol, /sys/carol"),
              "/run/host-0/x of user-0, /sys/carol");
}

TEST(DoctorRedact, AShortNameIsReplacedWhereOnlyANameCanStand)
{
    Redactor redactor(machine_of("ab", "j"), "h1", {"io"});
    EXPECT_EQ(redacted_file(redactor, "/etc/passwd", "root:x:0:0:::\nj:x:1:1:::\n"),
              "root:x:0:0:::\nuser-0:x:1:1:::\n");
    EXPECT_EQ(redacted_file(redactor, "/proc/7/comm", "ab\n"), "process-0\n");
    EXPECT_EQ(redacted_file(redactor, "/proc/7/cmdline", std::string("ab\0", 3)),
              std::string("process-0\0", 10));
    EXPECT_EQ(redacted_file(redactor, "/proc/sys/kernel/hostname", "h1\n"), "host-0\n");
    EXPECT_EQ(redacted_file(redactor, "/dev/kmsg", "Nov 22 01:02:03 h1 kernel: NVRM: j io\n"),
              "Nov 22 01:02:03 host-0 kernel: NVRM: j io\n");
    EXPECT_EQ(redactor("process 7 (ab, j) has io of /scratch/j and /var/x/io/y"),
              "process 7 (process-0, user-0) has io of /scratch/user-0 and /var/x/user-1/y");
    EXPECT_EQ(redactor.name("j"), "user-0");
}

TEST(DoctorRedact, TheFirstPartOfAHostsFullNameIsTheHost)
{
    Redactor redactor(Machine(), "gpu01.corp.example.com");
    EXPECT_EQ(redactor("gpu01 kernel: gpu01.corp.example.com"), "host-0 kernel: host-0");
}

TEST(DoctorRedact, AUsersNumberIsNoName)
{
    Redactor redactor(machine_of("job", "1000"), "");
    EXPECT_EQ(redacted_file(redactor, "/proc/7/status", "Uid:\t1000\n"), "Uid:\t1000\n");
}

Facts throttled_card(double limit)
{
    Facts facts;
    Card card = unknown_card();
    card.info.kind = YOKE_CARD_GPU;
    put(card.info.vendor, "nvidia");
    put(card.info.uuid, "GPU-1");
    put(card.info.pci, "0000:65:00.0");
    card.info.throttle = YOKE_THROTTLE_HW_THERMAL;
    card.info.power_limit = limit;
    facts.machine.cards.push_back(card);
    facts.machine.links.resize(1);
    return facts;
}

TEST(DoctorChecks, APowerLimitThatIsNotKnownIsNotSet)
{
    const Finding unknown = check_throttle(throttled_card(std::nan("")));
    EXPECT_EQ(unknown.status, kWarn);
    EXPECT_EQ((unknown.evidence + unknown.remedy).find("nan"), std::string::npos)
        << unknown.evidence << unknown.remedy;
    EXPECT_EQ(unknown.remedy.find("-pl"), std::string::npos) << unknown.remedy;
    const Finding known = check_throttle(throttled_card(300));
    EXPECT_LT(known.remedy.find("-q -d POWER"), known.remedy.find("-pl 240")) << known.remedy;
}

TEST(DoctorChecks, UbuntuKeepsItsSigningKeyElsewhere)
{
    Facts facts = throttled_card(300);
    facts.distribution = "ubuntu";
    facts.dkms = {"580.82.07"};
    facts.secure_boot = true;
    EXPECT_NE(check_module_loaded(facts).remedy.find("/var/lib/shim-signed/mok/MOK.der"),
              std::string::npos);
}

}  // namespace
}  // namespace yoke::doctor
