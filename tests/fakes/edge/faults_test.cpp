// Faults in scenarios appear in the fake NVML library, and so do changes.
#include <chrono>

#include "tests/fakes/edge/library.h"

using namespace yoke::fake_nvml;

namespace {

// A scenario of a few keys over another.
class Changed {
public:
    explicit Changed(const std::string &text)
    {
        std::string made =
            (std::filesystem::temp_directory_path() / "fake-scenario-XXXXXX").string();
        if (!mkdtemp(made.data())) throw std::runtime_error("no temporary folder");
        folder = made;
        std::ofstream(folder / "machine.json") << text;
    }
    ~Changed() { std::filesystem::remove_all(folder); }
    std::string path() const { return (folder / "machine.json").string(); }

    std::filesystem::path folder;
};

TEST(Faults, a_card_is_lost_after_so_many_questions_and_stays_lost)
{
    Machine machine("lost-mid-run");
    ASSERT_EQ(machine.start(), 0);
    Handle *const fourth = machine.device(3), *const fifth = machine.device(4);
    uint watts = 0;
    int answered = 0;
    while (machine.call("nvmlDeviceGetPowerUsage", fourth, &watts) == 0 && answered < 100)
        ++answered;
    EXPECT_EQ(answered, 39);  // the query for the handle was the first of the forty
    EXPECT_EQ(machine.call("nvmlDeviceGetPowerUsage", fourth, &watts), kGpuIsLost);
    EXPECT_EQ(machine.call("nvmlDeviceGetPowerUsage", fifth, &watts), 0);
    Handle *again = nullptr;
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByIndex_v2", 3u, &again), kGpuIsLost);
    void *set = nullptr;
    EventData event{};
    EXPECT_EQ(machine.call("nvmlEventSetCreate", &set), 0);
    EXPECT_EQ(machine.call("nvmlDeviceRegisterEvents", fifth, 8ull, set), 0);
    EXPECT_EQ(machine.call("nvmlEventSetWait_v2", set, &event, 1u), kTimeout);  // not of this card
    EXPECT_EQ(machine.call("nvmlEventSetFree", set), 0);
}

TEST(Faults, an_event_that_was_asked_for_is_told_once)
{
    Machine machine("remap-pending");
    ASSERT_EQ(machine.start(), 0);
    void *set = nullptr;
    EventData event{};
    ASSERT_EQ(machine.call("nvmlEventSetCreate", &set), 0);
    for (uint i = 0; i < 2; ++i)
        EXPECT_EQ(machine.call("nvmlDeviceRegisterEvents", machine.device(i), 8ull, set), 0);
    EXPECT_EQ(machine.call("nvmlEventSetWait_v2", set, &event, 1u), 0);
    EXPECT_EQ(event.data, 63u);
    EXPECT_EQ(event.device, machine.device(0));
    EXPECT_EQ(machine.call("nvmlEventSetWait_v2", set, &event, 1u), 0);
    EXPECT_EQ(event.data, 64u);
    EXPECT_EQ(machine.call("nvmlEventSetWait_v2", set, &event, 1u), kTimeout);
    EXPECT_EQ(machine.call("nvmlEventSetFree", set), 0);
}

TEST(Faults, one_call_of_one_card_hangs)
{
    const Changed changed(R"({"extends": "8xH100-nvlink",
        "nvml": {"hang": {"call": "nvmlDeviceGetUtilizationRates", "seconds": 0.2, "gpu": 5}}})");
    Machine machine(changed.path());
    ASSERT_EQ(machine.start(), 0);
    Utilization used;
    const auto seconds = [&](uint index) {
        const auto from = std::chrono::steady_clock::now();
        EXPECT_EQ(machine.call("nvmlDeviceGetUtilizationRates", machine.device(index), &used), 0);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
    };
    EXPECT_GE(seconds(5), 0.2);
    EXPECT_LT(seconds(4), 0.2);
}

TEST(Faults, starting_fails_as_the_machine_demands)
{
    const struct {
        const char *scenario;
        int code;
    } kCases[] = {{"driver-library-mismatch", kVersionMismatch},
                  {"no-permission", kNoPermission},
                  {"nouveau", kDriverNotLoaded}};
    for (const auto &[scenario, code] : kCases) {
        Machine machine(scenario);
        EXPECT_EQ(machine.start(), code) << scenario;
        uint count = 0;
        EXPECT_EQ(machine.call("nvmlDeviceGetCount_v2", &count), kUninitialized);
    }
}

TEST(Faults, a_call_that_the_scenario_lets_fail_gives_its_code)
{
    Machine machine("vm-no-topology");
    ASSERT_EQ(machine.start(), 0);
    int level = 0;
    EXPECT_EQ(machine.call("nvmlDeviceGetTopologyCommonAncestor", machine.device(0),
                           machine.device(1), &level),
              kNotSupported);
}

TEST(Faults, a_struct_whose_version_is_refused_or_unknown_is_a_mismatch)
{
    const auto ask = [](const Machine &machine, uint number) {
        MemoryV2 memory{};
        memory.version = version_of<MemoryV2>(number);
        return machine.call("nvmlDeviceGetMemoryInfo_v2", machine.device(0), &memory);
    };
    {
        Machine fine("A100+T4");
        ASSERT_EQ(fine.start(), 0);
        EXPECT_EQ(ask(fine, 2), 0);
        EXPECT_EQ(ask(fine, 3), kArgumentVersionMismatch);
    }
    Machine machine("struct-version-rejection");
    ASSERT_EQ(machine.start(), 0);
    EXPECT_EQ(ask(machine, 2), kArgumentVersionMismatch);
    Memory memory;
    EXPECT_EQ(machine.call("nvmlDeviceGetMemoryInfo", machine.device(0), &memory), 0);
}

TEST(Faults, calls_that_a_driver_lacks_are_not_found)
{
    const Machine machine("missing-v2-symbols");
    EXPECT_EQ(machine.find("nvmlDeviceGetMemoryInfo_v2"), nullptr);
    EXPECT_EQ(machine.find("nvmlDeviceGetComputeRunningProcesses_v3"), nullptr);
    EXPECT_NE(machine.find("nvmlDeviceGetMemoryInfo"), nullptr);
    EXPECT_NE(machine.find("nvmlDeviceGetComputeRunningProcesses_v2"), nullptr);
}

TEST(Faults, nvml_counts_cards_in_the_scenarios_order)
{
    Machine machine("mixed-order");
    ASSERT_EQ(machine.start(), 0);
    EXPECT_EQ(machine.text("nvmlDeviceGetName", machine.device(0)), "NVIDIA A100-PCIE-40GB");
    EXPECT_EQ(machine.text("nvmlDeviceGetName", machine.device(1)), "Tesla T4");
    EXPECT_EQ(machine.number("nvmlDeviceGetIndex", machine.device(3)), 3u);
}

TEST(Faults, what_is_written_into_the_scenario_later_is_told_at_the_next_question)
{
    const Changed changed(R"({"extends": "A100+T4"})");
    Machine machine(changed.path());
    ASSERT_EQ(machine.start(), 0);
    uint degrees = 0;
    EXPECT_EQ(machine.call("nvmlDeviceGetTemperature", machine.device(1), 0, &degrees), 0);
    EXPECT_EQ(degrees, 34u);
    std::string text = machine.read("scenario.json");
    const std::string key = "\"temperature\": 34";
    ASSERT_NE(text.find(key), text.npos);
    text.replace(text.find(key), key.size(), "\"temperature\": 91");
    std::ofstream(machine.folder / "next.json") << text;
    std::filesystem::rename(machine.folder / "next.json", machine.folder / "scenario.json");
    EXPECT_EQ(machine.call("nvmlDeviceGetTemperature", machine.device(1), 0, &degrees), 0);
    EXPECT_EQ(degrees, 91u);
    std::ofstream(machine.folder / "scenario.json") << "{ half of";  // left alone until it is whole
    EXPECT_EQ(machine.call("nvmlDeviceGetTemperature", machine.device(1), 0, &degrees), 0);
    EXPECT_EQ(degrees, 91u);
}

TEST(Faults, each_call_is_noted_with_the_card_it_asked)
{
    Machine machine("sleeping-gpu");
    ASSERT_EQ(machine.start(), 0);
    EXPECT_EQ(machine.read("calls"), "nvmlInit_v2\n");
    machine.text("nvmlDeviceGetName", machine.device(0));
    EXPECT_EQ(machine.read("calls"),
              "nvmlInit_v2\nnvmlDeviceGetHandleByIndex_v2\nnvmlDeviceGetName 0000:01:00.0\n");
}

TEST(Faults, parts_of_a_card_answer_for_themselves)
{
    Machine machine("mig-7x");
    ASSERT_EQ(machine.start(), 0);
    Handle *part = nullptr, *whole = nullptr;
    ASSERT_EQ(machine.call("nvmlDeviceGetMigDeviceHandleByIndex", machine.device(0), 2u, &part), 0);
    EXPECT_EQ(machine.text("nvmlDeviceGetName", part), "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
    EXPECT_EQ(machine.number("nvmlDeviceIsMigDeviceHandle", part), 1u);
    EXPECT_EQ(machine.number("nvmlDeviceGetGpuInstanceId", part), 9u);
    EXPECT_EQ(machine.number("nvmlDeviceGetComputeInstanceId", part), 0u);
    EXPECT_EQ(machine.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", part, &whole), 0);
    EXPECT_EQ(whole, machine.device(0));
    Handle *found = nullptr;
    const std::string uuid = machine.text("nvmlDeviceGetUUID", part);
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found), 0);
    EXPECT_EQ(found, part);
    Memory memory;
    EXPECT_EQ(machine.call("nvmlDeviceGetMemoryInfo", part, &memory), 0);
    EXPECT_EQ(memory.total, 4864ull << 20);
    Utilization used;
    EXPECT_EQ(machine.call("nvmlDeviceGetUtilizationRates", part, &used), kNotSupported);
    ProcessV2 list[4];
    uint count = 4;
    EXPECT_EQ(machine.call("nvmlDeviceGetComputeRunningProcesses_v3", machine.device(0), &count,
                           &list[0]),
              0);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(list[0].gpu_instance, 9u);
    count = 0;
    EXPECT_EQ(machine.call("nvmlDeviceGetComputeRunningProcesses_v3", part, &count,
                           static_cast<ProcessV2 *>(nullptr)),
              kInsufficientSize);
    EXPECT_EQ(count, 1u);
}

TEST(Faults, a_machine_without_a_licence_says_so)
{
    for (const bool licensed : {false, true}) {
        Machine machine(licensed ? "vgpu-licensed" : "vgpu-unlicensed");
        ASSERT_EQ(machine.start(), 0);
        LicensableFeatures licences;
        EXPECT_EQ(
            machine.call("nvmlDeviceGetGridLicensableFeatures_v4", machine.device(0), &licences),
            0);
        ASSERT_EQ(licences.count, 1u);
        EXPECT_EQ(licences.features[0].licensed, licensed);
        EXPECT_EQ(machine.number<int>("nvmlDeviceGetVirtualizationMode", machine.device(0)), 2);
    }
}

TEST(Faults, processes_that_are_hidden_are_counted_and_have_no_name)
{
    Machine machine("container-hidden-processes");
    ASSERT_EQ(machine.start(), 0);
    ProcessV1 list[4];
    uint count = 4;
    EXPECT_EQ(
        machine.call("nvmlDeviceGetComputeRunningProcesses", machine.device(0), &count, &list[0]),
        0);
    ASSERT_EQ(count, 3u);
    EXPECT_EQ(list[1].pid, 901233u);
    EXPECT_EQ(list[1].memory, 14ull << 30);
    char name[64];
    EXPECT_EQ(machine.call("nvmlSystemGetProcessName", 214u, &name[0], 64u), 0);
    EXPECT_STREQ(name, "python");
    EXPECT_EQ(machine.call("nvmlSystemGetProcessName", 901233u, &name[0], 64u), kNotFound);
    ProcessSample samples[4];
    count = 4;
    EXPECT_EQ(machine.call("nvmlDeviceGetProcessUtilization", machine.device(0), &samples[0],
                           &count, 0ull),
              0);
    EXPECT_EQ(samples[1].sm, 64u);
}

}  // namespace
