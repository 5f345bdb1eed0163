// The doctor's parts by themselves: programs with a deadline, placeholders, versions.
#include "core/doctor/probe.h"
#include "core/doctor/redact.h"
#include "core/doctor/report.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace yoke::doctor {
namespace {

std::vector<std::string> shell(const std::string &text)
{
    return {"/bin/sh", "-c", text};
}

TEST(DoctorProbe, AProgramsOutputAndStatusComeBack)
{
    const Outcome outcome = run_bounded(shell("echo one; echo two >&2; exit 3"), 10);
    EXPECT_EQ(outcome.output, "one\ntwo\n");
    EXPECT_FALSE(outcome.late);
    ASSERT_GE(outcome.status, 0);
    EXPECT_EQ(WEXITSTATUS(outcome.status), 3);
}

TEST(DoctorProbe, AProgramThatHangsIsEndedWithItsChildrenAtTheDeadline)
{
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = run_bounded(shell("sleep 60 & echo $!; sleep 60"), 0.3);
    const double took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(outcome.late);
    EXPECT_LT(took, 20);
    const int child = atoi(outcome.output.c_str());
    ASSERT_GT(child, 1);
    // The child's parent is gone. Another process inherits the child and fetches its status after a moment.
    for (int i = 0; i < 2000 && kill(child, 0) == 0; ++i) {
        RecordedRoot root;
        const std::string stat = root.line("/proc/" + std::to_string(child) + "/stat");
        if (stat.find(") Z") != stat.npos) return;
        usleep(1000);
    }
    EXPECT_NE(kill(child, 0), 0);
}

TEST(DoctorProbe, AProgramThatClosesItsOutputAndGoesOnIsEndedToo)
{
    const Outcome outcome = run_bounded(shell("exec >/dev/null 2>&1; sleep 60"), 0.3);
    EXPECT_TRUE(outcome.late);
}

TEST(DoctorProbe, AProgramThatIsNotThereIsAProblemNotAnEnd)
{
    const Outcome outcome = run_bounded({"/no/such/program"}, 1);
    EXPECT_NE(outcome.problem.find("/no/such/program"), std::string::npos);
    EXPECT_NE(outcome.problem.find("No such file"), std::string::npos);
}

TEST(DoctorProbe, OutputIsBounded)
{
    const Outcome outcome = run_bounded(shell("head -c 1000000 /dev/zero"), 30);
    EXPECT_LE(outcome.output.size(), 64u * 1024 + 4096);
    EXPECT_FALSE(outcome.late);
}

TEST(DoctorProbe, LinesOfFiguresAreTakenAndOthersAreNot)
{
    ProbeResult result{};
    EXPECT_TRUE(take_line("h2d 2.5e10", {4, 7}, result));
    EXPECT_TRUE(take_line("peer.1 1e9", {4, 7}, result));
    EXPECT_TRUE(take_line("peer.9 1e9", {4, 7}, result));
    EXPECT_TRUE(take_line("smoke wrong: it is 3", {4, 7}, result));
    EXPECT_FALSE(take_line("done", {4, 7}, result));
    EXPECT_FALSE(take_line("CUDA is not well", {4, 7}, result));
    EXPECT_EQ(result.host_to_device, 2.5e10);
    EXPECT_EQ(result.peers, (std::map<int, double>{{7, 1e9}}));
    EXPECT_EQ(result.smoke, "wrong: it is 3");
}

TEST(DoctorProbe, TheProgramIsFoundInTheFolderThatIsNamed)
{
    Facts facts;
    char folder[] = "/tmp/yoke-probe-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    facts.variables["YOKE_BIN"] = folder;
    const std::string program = std::string(folder) + "/yoke-probe";
    ASSERT_EQ(symlink("/bin/true", program.c_str()), 0);
    EXPECT_EQ(probe_program(facts), program);
    unlink(program.c_str());
    rmdir(folder);
    EXPECT_NE(probe_program(facts), program);
}

// ---- A probe on a made-up card with a made-up program

Facts one_card()
{
    Facts facts;
    Card card = unknown_card();
    card.info.kind = YOKE_CARD_GPU;
    put(card.info.vendor, "nvidia");
    put(card.info.name, "NVIDIA H200");
    put(card.info.uuid, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
    put(card.info.pci, "0000:65:00.0");
    card.info.index = 0;
    card.info.nvml_index = 0;
    facts.machine.cards.push_back(card);
    facts.machine.links.resize(1);
    facts.visible.cards = {0};
    facts.build.present = true;
    return facts;
}

Finding smoke_with(const std::string &script, double deadline)
{
    char folder[] = "/tmp/yoke-probe-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    const std::string program = std::string(folder) + "/yoke-probe";
    FILE *file = fopen(program.c_str(), "w");
    fprintf(file, "#!/bin/sh\n%s\n", script.c_str());
    fclose(file);
    EXPECT_EQ(access(program.c_str(), F_OK), 0);
    EXPECT_EQ(chmod(program.c_str(), 0700), 0);
    Facts facts = one_card();
    facts.variables["YOKE_BIN"] = folder;
    RecordedRoot root;
    run_probes(root, facts, deadline);
    unlink(program.c_str());
    rmdir(folder);
    return check_smoke(facts);
}

TEST(DoctorProbe, ADeviceThatWorksIsContent)
{
    EXPECT_EQ(smoke_with("echo smoke ok; echo done", 10).status, kOk);
}

TEST(DoctorProbe, AHostThatTakesNoNoticeOfItsChildrenIsServedAllTheSame)
{
    const auto before = signal(SIGCHLD, SIG_IGN);
    EXPECT_EQ(smoke_with("echo smoke ok; echo done", 10).status, kOk);
    EXPECT_EQ(smoke_with("echo bad; exit 1", 10).status, kFail);
    signal(SIGCHLD, before);
}

TEST(DoctorProbe, ADeviceThatHangsFailsWithWhatHappened)
{
    const Finding finding = smoke_with("echo smoke ok; sleep 60", 0.3);
    EXPECT_EQ(finding.status, kFail);
    EXPECT_NE(finding.evidence.find("no answer within"), std::string::npos) << finding.evidence;
}

TEST(DoctorProbe, ADeviceThatCrashesFailsWithTheSignal)
{
    const Finding finding = smoke_with("kill -SEGV $$", 10);
    EXPECT_EQ(finding.status, kFail);
    EXPECT_NE(finding.evidence.find("Segmentation fault"), std::string::npos) << finding.evidence;
}

TEST(DoctorProbe, AnErrorThatTheDriverNamesFailsWithTheLastWordsAndAsksForNoReset)
{
    const Finding finding = smoke_with("echo smoke ok; echo launch: no kernel image; exit 1", 10);
    EXPECT_EQ(finding.status, kFail);
    EXPECT_NE(finding.evidence.find("launch: no kernel image"), std::string::npos);
    EXPECT_EQ(finding.remedy.find("reset"), std::string::npos) << finding.remedy;
}

TEST(DoctorProbe, ADeviceThatCouldNotBeTriedIsAWarning)
{
    const Finding finding = smoke_with("echo untried device: no memory is free; exit 3", 10);
    EXPECT_EQ(finding.status, kWarn);
    EXPECT_NE(finding.evidence.find("could not be tried: device: no memory is free"),
              std::string::npos)
        << finding.evidence;
    EXPECT_EQ(finding.remedy.find("reset"), std::string::npos) << finding.remedy;
}

TEST(DoctorProbe, WrongBytesAskForAReset)
{
    const Finding finding = smoke_with("echo smoke ok; echo broken other bytes; echo done", 10);
    EXPECT_EQ(finding.status, kFail);
    EXPECT_NE(finding.remedy.find("nvidia-smi -i 0000:65:00.0 --gpu-reset"), std::string::npos);
}

TEST(DoctorProbe, ABuildWithoutCudaAndPlatformsWithoutItAreNotTried)
{
    Facts facts = one_card();
    facts.variables["YOKE_BIN"] = "/bin";
    RecordedRoot root;
    facts.variables["YOKE_PLATFORMS"] = "cpu";
    run_probes(root, facts, 1);
    EXPECT_TRUE(facts.probes.empty());
    facts.build.present = false;
    run_probes(root, facts, 1);
    EXPECT_TRUE(facts.probes.empty());
    EXPECT_EQ(check_smoke(facts).status, kSkip);
}

TEST(DoctorChecks, CopiesThatWereNotMeasuredBringNoWrongBytes)
{
    Facts facts = one_card();
    facts.machine.cards.push_back(facts.machine.cards[0]);
    facts.machine.links.resize(4);
    facts.probes[0].peers[1] = ProbeResult::kNone;
    facts.probes[0].unmeasured = "peer: no memory";
    const Finding missed = check_peer_copies(facts);
    EXPECT_EQ(missed.status, kSkip);
    EXPECT_NE(missed.evidence.find("no memory"), std::string::npos) << missed.evidence;
    facts.probes[0].peers[1] = 0;
    const Finding wrong = check_peer_copies(facts);
    EXPECT_EQ(wrong.status, kFail);
    EXPECT_EQ(wrong.evidence.find("the driver claims"), std::string::npos) << wrong.evidence;
}

// ---- Placeholders

Machine machine_with_names()
{
    Machine machine = one_card().machine;
    yoke_card_process process{};
    put(process.name, "secret-job");
    put(process.user, "alice");
    machine.cards[0].processes.push_back(process);
    return machine;
}

TEST(DoctorRedact, TheSameNameIsTheSamePlaceholderEverywhere)
{
    Redactor redactor(machine_with_names(), "node-17");
    EXPECT_EQ(redactor("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6 of alice on node-17: secret-job"),
              "GPU-0 of user-0 on host-0: process-0");
    EXPECT_EQ(redactor("GPU-8932,GPU-ffff"), "GPU-0,GPU-ffff");
    EXPECT_EQ(redactor("/home/alice/x and /home/bob/y, /home/bob"),
              "/home/user-0/x and /home/user-1/y, /home/user-1");
    EXPECT_EQ(redactor("boltctl 0ae4f1d2-0000-1111-2222-333344445555"), "boltctl UUID-0");
    EXPECT_EQ(redactor("/docker/" + std::string(64, 'a')), "/docker/container-0");
    EXPECT_EQ(redactor(std::string(64, 'a')), "container-0");
}

TEST(DoctorRedact, ANameIsOnlyAWholeWord)
{
    Redactor redactor(machine_with_names(), "node-17");
    EXPECT_EQ(redactor("alices malice node-170 secret-jobs"), "alices malice node-170 secret-jobs");
    EXPECT_EQ(redactor.patterns("run secret-job as alice"), "run secret-job as user-0");
}

// ---- Checks by hand-made facts, where a scenario says too little

TEST(DoctorChecks, AMachineWithoutAnythingSkipsWhatDoesNotApply)
{
    const Report report = examine(Facts());
    EXPECT_EQ(report.exit_code, 0);
    for (const Check &check : report.checks) {
        EXPECT_NE(check.finding.status, kFail) << check.id << ": " << check.finding.evidence;
        EXPECT_FALSE(check.finding.evidence.empty()) << check.id;
        EXPECT_EQ(check.finding.remedy.empty(),
                  check.finding.status == kOk || check.finding.status == kSkip)
            << check.id;
        EXPECT_EQ(std::string(check.url).rfind("https://", 0), 0u) << check.id;
    }
}

TEST(DoctorChecks, RemediesAreOfTheDistribution)
{
    Facts facts = one_card();
    put(facts.machine.cards[0].info.driver, "nouveau");
    const auto remedy = [&](const char *id, const char *like) {
        facts.distribution = id;
        facts.distribution_like = like;
        return check_driver_bound(facts).remedy;
    };
    EXPECT_NE(remedy("debian", "").find("apt-get install nvidia-driver\n"), std::string::npos);
    EXPECT_NE(remedy("linuxmint", "ubuntu debian").find("apt-get install nvidia-driver-580"),
              std::string::npos);
    EXPECT_NE(remedy("rocky", "rhel centos fedora").find("sudo dracut --force"), std::string::npos);
    EXPECT_NE(remedy("manjaro", "arch").find("sudo mkinitcpio -P"), std::string::npos);
    EXPECT_NE(remedy("", "").find("update-initramfs -u"), std::string::npos);
}

TEST(DoctorChecks, EachXidIsInItsBucket)
{
    const auto of = [](const char *text) {
        Facts facts = one_card();
        facts.log = std::string("NVRM: Xid (PCI:0000:65:00): ") + text;
        return check_xid(facts);
    };
    for (const char *ignored : {"43, pid=1", "63, pid=1", "92, pid=1"})
        EXPECT_EQ(of(ignored).status, kOk) << ignored;
    for (const char *milder :
         {"13, pid=1", "31, pid=1", "94, pid=1", "45, x", "48, x", "74, x", "154, x", "999, x"})
        EXPECT_EQ(of(milder).status, kWarn) << milder;
    for (const char *reset :
         {"62, x", "64, x", "95, x", "109, x", "119, x", "120, x", "140, x", "143, x"}) {
        EXPECT_EQ(of(reset).status, kFail) << reset;
        EXPECT_NE(of(reset).remedy.find("nvidia-smi -i 0000:65:00.0 --gpu-reset"),
                  std::string::npos);
    }
    EXPECT_NE(of("79, x").remedy.find("sudo reboot"), std::string::npos);
    EXPECT_EQ(of("79, x").card, 0);
}

TEST(DoctorChecks, ABuildServesWhatItsArchsSay)
{
    const auto status = [](const char *arch, int cc, int cuda = 12000) {
        Facts facts = one_card();
        facts.machine.cards[0].info.cc_major = cc / 10;
        facts.machine.cards[0].info.cc_minor = cc % 10;
        facts.build = {true, cuda, {arch}};
        return check_compute_capability(facts);
    };
    EXPECT_EQ(status("80", 86).status, kOk);         // machine code serves later minors
    EXPECT_EQ(status("80", 90).status, kOk);         // by the PTX
    EXPECT_EQ(status("80-real", 90).status, kFail);  // no PTX
    EXPECT_EQ(status("90-virtual", 90).status, kOk);
    EXPECT_EQ(status("90a", 90).status, kOk);
    EXPECT_EQ(status("90a", 100).status, kFail);
    EXPECT_EQ(status("90", 89).status, kFail);
    EXPECT_NE(status("90", 70, 13000).remedy.find("CUDA 12"), std::string::npos);
}

TEST(DoctorChecks, VersionsCompareByTheirNumbers)
{
    EXPECT_EQ(compare_versions("580.82.07", "580"), 1);
    EXPECT_EQ(compare_versions("580", "580"), 0);
    EXPECT_EQ(compare_versions("525.60", "580"), -1);
    EXPECT_EQ(compare_versions("6.1.0-39-amd64", "5.12"), 1);
    EXPECT_EQ(compare_versions("450.80.02", "450.80.02"), 0);
    EXPECT_EQ(compare_versions("450.80.01", "450.80.02"), -1);
}

}  // namespace
}  // namespace yoke::doctor
