// Every call of the fake NVML library, made once over eight H100, returns the scenario's values.
#include "tests/fakes/edge/library.h"

using namespace yoke::fake_nvml;

namespace {

class Values : public testing::Test {
protected:
    // All tests share a machine, because the end compares the calls made with all calls of the library.
    static void SetUpTestSuite()
    {
        s_machine = new Machine("8xH100-nvlink");
        ASSERT_EQ(s_machine->start(), 0);
    }
    static void TearDownTestSuite() { delete s_machine; }

    static Machine &machine() { return *s_machine; }
    static Handle *card(uint index = 0) { return s_machine->device(index); }
    static Machine *s_machine;
};
Machine *Values::s_machine;

constexpr ulonglong kMiB = 1 << 20;

TEST_F(Values, of_the_machine)
{
    char text[80] = "";
    EXPECT_EQ(machine().call("nvmlSystemGetDriverVersion", &text[0], 80u), 0);
    EXPECT_STREQ(text, "580.82.07");
    EXPECT_EQ(machine().call("nvmlSystemGetNVMLVersion", &text[0], 80u), 0);
    EXPECT_STREQ(text, "13.580.82.07");
    for (const char *name :
         {"nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"}) {
        int version = 0;
        EXPECT_EQ(machine().call(name, &version), 0);
        EXPECT_EQ(version, 13000);
    }
    DriverBranch branch{version_of<DriverBranch>(1), ""};
    EXPECT_EQ(machine().call("nvmlSystemGetDriverBranch", &branch, 80u), 0);
    EXPECT_STREQ(branch.branch, "r580_00");
    uint count = 9;
    for (const char *name : {"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"}) {
        EXPECT_EQ(machine().call(name, &count), 0);
        EXPECT_EQ(count, 8u);
    }
    EXPECT_EQ(machine().call("nvmlGetExcludedDeviceCount", &count), 0);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(machine().call("nvmlSystemGetProcessName", 1u, &text[0], 80u), kNotFound);
    using Text = const char *(*)(int);
    EXPECT_STREQ(reinterpret_cast<Text>(machine().find("nvmlErrorString"))(15), "GPU is lost");
    EXPECT_STREQ(reinterpret_cast<Text>(machine().find("nvmlErrorString"))(-7), "Unknown Error");
}

TEST_F(Values, handles_are_the_same_however_a_card_is_found)
{
    Handle *found = nullptr;
    const auto is_card = [&](int code, Handle *expected) { return code == 0 && found == expected; };
    const std::string uuid = machine().text("nvmlDeviceGetUUID", card(2));
    EXPECT_TRUE(is_card(machine().call("nvmlDeviceGetHandleByIndex", 2u, &found), card(2)));
    EXPECT_TRUE(
        is_card(machine().call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found), card(2)));
    for (const char *name : {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2"})
        for (const char *address : {"0000:52:00.0", "00000000:52:00.0", "52:00.0"})
            EXPECT_TRUE(is_card(machine().call(name, address, &found), card(2))) << address;
    EXPECT_TRUE(
        is_card(machine().call("nvmlDeviceGetHandleBySerial", "1652923033742", &found), card(2)));
    UuidV given{version_of<UuidV>(1), 1, {}};
    snprintf(given.text, sizeof given.text, "%s", uuid.c_str());
    EXPECT_TRUE(is_card(machine().call("nvmlDeviceGetHandleByUUIDV", &given, &found), card(2)));
    EXPECT_EQ(machine().number("nvmlDeviceGetIndex", card(2)), 2u);
}

TEST_F(Values, of_what_a_card_is)
{
    EXPECT_EQ(machine().text("nvmlDeviceGetName", card()), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(machine().text("nvmlDeviceGetSerial", card()), "1652923033000");
    EXPECT_EQ(machine().text("nvmlDeviceGetVbiosVersion", card()), "96.00.61.00.01");
    EXPECT_EQ(machine().text("nvmlDeviceGetBoardPartNumber", card()), "692-2G520-0200-000");
    int major = 0, minor = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetCudaComputeCapability", card(), &major, &minor), 0);
    EXPECT_EQ(major * 10 + minor, 90);
    EXPECT_EQ(machine().number("nvmlDeviceGetArchitecture", card()), 9u);
    EXPECT_EQ(machine().number("nvmlDeviceGetNumGpuCores", card()), 16896u);
    EXPECT_EQ(machine().number("nvmlDeviceGetMemoryBusWidth", card()), 5120u);
    EXPECT_EQ(machine().number("nvmlDeviceGetMinorNumber", card(3)), 3u);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetBrand", card()), 14);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetBusType", card()), 2);
    EXPECT_EQ(machine().number("nvmlDeviceGetBoardId", card()), 0x1b00u);
    EXPECT_EQ(machine().number("nvmlDeviceGetMultiGpuBoard", card()), 0u);
}

TEST_F(Values, of_its_place_on_the_bus_each_version_writes_no_more_than_its_struct)
{
    constexpr struct {
        const char *name;
        size_t bytes;
    } kCalls[] = {{"nvmlDeviceGetPciInfo", 32},
                  {"nvmlDeviceGetPciInfo_v2", 36},
                  {"nvmlDeviceGetPciInfo_v3", 68}};
    for (const auto &[name, bytes] : kCalls) {
        unsigned char room[80];
        memset(room, 0xEE, sizeof room);
        ASSERT_EQ(machine().call(name, card(), reinterpret_cast<PciInfo *>(room)), 0);
        PciInfo pci;
        memcpy(&pci, room, sizeof pci);
        EXPECT_STREQ(pci.legacy_id, "0000:1B:00.0") << name;
        EXPECT_EQ(pci.pci_id, 0x233010deu) << name;
        for (size_t i = bytes; i < sizeof room; ++i)
            EXPECT_EQ(room[i], 0xEE) << name << " wrote byte " << i;
        if (bytes == sizeof pci) {
            EXPECT_STREQ(pci.id, "00000000:1B:00.0");
        }
    }
    PciInfoExt whole{};
    whole.version = version_of<PciInfoExt>(1);
    EXPECT_EQ(machine().call("nvmlDeviceGetPciInfoExt", card(), &whole), 0);
    EXPECT_EQ(whole.base_class, 3u);
    EXPECT_EQ(whole.sub_class, 2u);
    EXPECT_STREQ(whole.id, "00000000:1B:00.0");
}

TEST_F(Values, of_its_memory)
{
    Memory memory;
    EXPECT_EQ(machine().call("nvmlDeviceGetMemoryInfo", card(), &memory), 0);
    EXPECT_EQ(memory.total, 81559 * kMiB);
    EXPECT_EQ(memory.used, 551 * kMiB);  // v1 counts what the driver keeps as used
    MemoryV2 second{};
    second.version = version_of<MemoryV2>(2);
    EXPECT_EQ(machine().call("nvmlDeviceGetMemoryInfo_v2", card(), &second), 0);
    EXPECT_EQ(second.reserved, 551 * kMiB);
    EXPECT_EQ(second.used, 0u);
    EXPECT_EQ(second.free, second.total - second.reserved);
    Bar1Memory bar;
    EXPECT_EQ(machine().call("nvmlDeviceGetBAR1MemoryInfo", card(), &bar), 0);
    EXPECT_EQ(bar.total, 131072 * kMiB);
    ConfidentialMemory confidential;
    EXPECT_EQ(machine().call("nvmlDeviceGetConfComputeMemSizeInfo", card(), &confidential), 0);
    EXPECT_EQ(confidential.unprotected_kib, 81559ull << 10);
}

TEST_F(Values, of_its_clocks_power_and_heat)
{
    const auto clock = [&](const char *name, int type) {
        uint told = 0;
        EXPECT_EQ(machine().call(name, card(), type, &told), 0);
        return told;
    };
    EXPECT_EQ(clock("nvmlDeviceGetClockInfo", 1), 345u);
    EXPECT_EQ(clock("nvmlDeviceGetMaxClockInfo", 0), 1980u);
    EXPECT_EQ(clock("nvmlDeviceGetMaxClockInfo", 2), 2619u);
    uint told = 0, most = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetClock", card(), 1, 0, &told), 0);
    EXPECT_EQ(told, 345u);
    EXPECT_EQ(machine().number("nvmlDeviceGetPowerUsage", card()), 70000u);
    EXPECT_EQ(machine().number("nvmlDeviceGetPowerManagementLimit", card()), 700000u);
    EXPECT_EQ(machine().number("nvmlDeviceGetEnforcedPowerLimit", card()), 700000u);
    EXPECT_EQ(machine().number("nvmlDeviceGetPowerManagementDefaultLimit", card()), 700000u);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetPowerManagementMode", card()), 1);
    EXPECT_EQ(machine().call("nvmlDeviceGetPowerManagementLimitConstraints", card(), &told, &most),
              0);
    EXPECT_EQ(told, 200000u);
    EXPECT_EQ(most, 700000u);
    ulonglong energy = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetTotalEnergyConsumption", card(), &energy),
              kNotSupported);
    EXPECT_EQ(machine().call("nvmlDeviceGetTemperature", card(), 0, &told), 0);
    EXPECT_EQ(told, 30u);
    TemperatureV second{version_of<TemperatureV>(1), 0, 0};
    EXPECT_EQ(machine().call("nvmlDeviceGetTemperatureV", card(), &second), 0);
    EXPECT_EQ(second.celsius, 30);
    EXPECT_EQ(machine().call("nvmlDeviceGetTemperatureThreshold", card(), 0, &told), 0);
    EXPECT_EQ(told, 92u);
    MarginTemperature margin{version_of<MarginTemperature>(1), 0};
    EXPECT_EQ(machine().call("nvmlDeviceGetMarginTemperature", card(), &margin), 0);
    EXPECT_EQ(margin.celsius, 57);
    EXPECT_EQ(machine().number("nvmlDeviceGetNumFans", card()), 0u);
    EXPECT_EQ(machine().call("nvmlDeviceGetFanSpeed", card(), &told), kNotSupported);
    EXPECT_EQ(machine().call("nvmlDeviceGetFanSpeed_v2", card(), 0u, &told), kNotSupported);
    FanSpeedInfo fan{version_of<FanSpeedInfo>(1), 0, 0};
    EXPECT_EQ(machine().call("nvmlDeviceGetFanSpeedRPM", card(), &fan), kNotSupported);
}

TEST_F(Values, of_its_work)
{
    Utilization used{9, 9};
    EXPECT_EQ(machine().call("nvmlDeviceGetUtilizationRates", card(), &used), 0);
    EXPECT_EQ(used.gpu + used.memory, 0u);
    uint percent = 9, period = 0;
    for (const char *name :
         {"nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetDecoderUtilization"}) {
        EXPECT_EQ(machine().call(name, card(), &percent, &period), 0);
        EXPECT_EQ(percent, 0u);
    }
    for (const char *name : {"nvmlDeviceGetPerformanceState", "nvmlDeviceGetPowerState"})
        EXPECT_EQ(machine().number(name, card()), 0u);
    for (const char *kind : {"Event", "Throttle"}) {
        const std::string reasons = std::string("Clocks") + kind + "Reasons";
        EXPECT_EQ(machine().number<ulonglong>("nvmlDeviceGetCurrent" + reasons, card()), 0u);
        EXPECT_EQ(machine().number<ulonglong>("nvmlDeviceGetSupported" + reasons, card()), 0x1ffu);
    }
    Violation violation{};
    EXPECT_EQ(machine().call("nvmlDeviceGetViolationStatus", card(), 0, &violation), 0);
    EXPECT_EQ(violation.time, 0u);
}

TEST_F(Values, of_its_health)
{
    int on = 0, pending = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetEccMode", card(), &on, &pending), 0);
    EXPECT_TRUE(on && pending);
    ulonglong errors = 9;
    EXPECT_EQ(machine().call("nvmlDeviceGetTotalEccErrors", card(), 1, 0, &errors), 0);
    EXPECT_EQ(errors, 0u);
    EXPECT_EQ(machine().call("nvmlDeviceGetMemoryErrorCounter", card(), 1, 0, 2, &errors), 0);
    EccCounts counts{9, 9, 9, 9};
    EXPECT_EQ(machine().call("nvmlDeviceGetDetailedEccErrors", card(), 0, 1, &counts), 0);
    EXPECT_EQ(counts.device_memory, 0u);
    uint corrected = 9, uncorrected = 9, due = 9, failed = 9;
    EXPECT_EQ(machine().call("nvmlDeviceGetRemappedRows", card(), &corrected, &uncorrected, &due,
                             &failed),
              0);
    EXPECT_EQ(corrected + uncorrected + due + failed, 0u);
    RemappedRowsV2 rows{9, 9, 9, 9, 9, 9};
    EXPECT_EQ(machine().call("nvmlDeviceGetRemappedRows_v2", card(), &rows), 0);
    EXPECT_EQ(rows.pending + rows.failed, 0u);
    RemapperHistogram histogram{};
    EXPECT_EQ(machine().call("nvmlDeviceGetRowRemapperHistogram", card(), &histogram), 0);
    EXPECT_EQ(histogram.max, 640u);
    uint count = 4;
    ulonglong pages[4], times[4];
    EXPECT_EQ(machine().call("nvmlDeviceGetRetiredPages", card(), 1, &count, &pages[0]),
              kNotSupported);
    EXPECT_EQ(
        machine().call("nvmlDeviceGetRetiredPages_v2", card(), 1, &count, &pages[0], &times[0]),
        kNotSupported);
    EXPECT_EQ(machine().call("nvmlDeviceGetRetiredPagesPendingStatus", card(), &on), kNotSupported);
}

TEST_F(Values, of_how_it_is_set_up)
{
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetComputeMode", card()), 0);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetPersistenceMode", card()), 1);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetDisplayActive", card()), 0);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetDisplayMode", card()), 0);
    EXPECT_EQ(machine().number<int>("nvmlDeviceGetVirtualizationMode", card()), 0);
    EXPECT_EQ(machine().number("nvmlDeviceGetMaxMigDeviceCount", card()), 7u);
    EXPECT_EQ(machine().number("nvmlDeviceIsMigDeviceHandle", card()), 0u);
    uint mode = 9, pending = 9;
    EXPECT_EQ(machine().call("nvmlDeviceGetMigMode", card(), &mode, &pending), 0);
    EXPECT_EQ(mode + pending, 0u);
    Handle *other = nullptr;
    EXPECT_EQ(machine().call("nvmlDeviceGetMigDeviceHandleByIndex", card(), 0u, &other), kNotFound);
    EXPECT_EQ(machine().call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", card(), &other),
              kInvalidArgument);
    EXPECT_EQ(machine().call("nvmlDeviceGetGpuInstanceId", card(), &mode), kNotSupported);
    EXPECT_EQ(machine().call("nvmlDeviceGetComputeInstanceId", card(), &mode), kNotSupported);
    for (const char *name : {"nvmlDeviceGetAttributes", "nvmlDeviceGetAttributes_v2"}) {
        Attributes attributes{};
        EXPECT_EQ(machine().call(name, card(), &attributes), 0);
        EXPECT_EQ(attributes.multiprocessors, 132u);
    }
    int current = 0, next = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetDriverModel_v2", card(), &current, &next),
              kNotSupported);
    LicensableFeatures licences;
    EXPECT_EQ(machine().call("nvmlDeviceGetGridLicensableFeatures_v4", card(), &licences), 0);
    EXPECT_EQ(licences.supported, 0);
    unsigned long set[2] = {0, 0};
    EXPECT_EQ(machine().call("nvmlDeviceGetCpuAffinity", card(4), 2u, &set[0]), 0);
    EXPECT_EQ(set[0], ~0ul << 56);
    EXPECT_EQ(set[1], (1ul << 48) - 1);
}

TEST_F(Values, of_its_links)
{
    for (const char *name :
         {"CurrPcieLinkGeneration", "MaxPcieLinkGeneration", "GpuMaxPcieLinkGeneration"})
        EXPECT_EQ(machine().number(std::string("nvmlDeviceGet") + name, card()), 5u);
    for (const char *name : {"CurrPcieLinkWidth", "MaxPcieLinkWidth"})
        EXPECT_EQ(machine().number(std::string("nvmlDeviceGet") + name, card()), 16u);
    EXPECT_EQ(machine().number("nvmlDeviceGetPcieReplayCounter", card()), 0u);
    EXPECT_EQ(machine().number("nvmlDeviceGetPcieSpeed", card()), 32000u);
    uint told = 9;
    EXPECT_EQ(machine().call("nvmlDeviceGetPcieThroughput", card(), 1, &told), 0);
    EXPECT_EQ(told, 0u);
    for (uint link = 0; link < 18; ++link) {
        int active = 0, type = 0;
        EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkState", card(), link, &active), 0);
        EXPECT_EQ(active, 1);
        EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkRemoteDeviceType", card(), link, &type), 0);
        EXPECT_EQ(type, 2);  // a switch
    }
    PciInfo remote{};
    EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkRemotePciInfo_v2", card(), 0u, &remote), 0);
    EXPECT_EQ(remote.pci_id, 0x22a310deu);
    EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkRemotePciInfo", card(), 0u, &remote), 0);
    EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkVersion", card(), 0u, &told), 0);
    EXPECT_EQ(told, 4u);
    EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkCapability", card(), 0u, 0, &told), 0);
    EXPECT_EQ(told, 1u);
    ulonglong errors = 9;
    EXPECT_EQ(machine().call("nvmlDeviceGetNvLinkErrorCounter", card(), 0u, 0, &errors), 0);
    EXPECT_EQ(errors, 0u);
}

TEST_F(Values, of_the_way_to_other_cards)
{
    const auto level = [&](uint a, uint b) {
        int told = -1;
        EXPECT_EQ(machine().call("nvmlDeviceGetTopologyCommonAncestor", card(a), card(b), &told),
                  0);
        return told;
    };
    EXPECT_EQ(level(0, 1), 40);  // bridges of one node
    EXPECT_EQ(level(0, 4), 50);  // between nodes
    int told = -1;
    for (const int what : {0, 1, 2, 3, 4}) {
        EXPECT_EQ(machine().call("nvmlDeviceGetP2PStatus", card(0), card(7), what, &told), 0);
        EXPECT_EQ(told, 0) << what;
    }
    EXPECT_EQ(machine().call("nvmlDeviceOnSameBoard", card(0), card(1), &told), 0);
    EXPECT_EQ(told, 0);
    uint count = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetTopologyNearestGpus", card(0), 40, &count,
                             static_cast<Handle **>(nullptr)),
              0);
    ASSERT_EQ(count, 3u);
    Handle *near[3];
    EXPECT_EQ(machine().call("nvmlDeviceGetTopologyNearestGpus", card(0), 40, &count, &near[0]), 0);
    EXPECT_EQ(near[2], card(3));
}

TEST_F(Values, of_processes_where_there_are_none)
{
    ProcessV2 list[2];
    for (const char *kind : {"Compute", "Graphics", "MPSCompute"})
        for (const char *version : {"", "_v2", "_v3"}) {
            uint count = 2;
            const std::string name =
                std::string("nvmlDeviceGet") + kind + "RunningProcesses" + version;
            EXPECT_EQ(machine().call(name, card(), &count, static_cast<void *>(&list[0])), 0)
                << name;
            EXPECT_EQ(count, 0u);
        }
    ProcessDetailList details{version_of<ProcessDetailList>(1), 3, 0, nullptr};
    EXPECT_EQ(machine().call("nvmlDeviceGetRunningProcessDetailList", card(), &details), 0);
    ProcessesUtilization use{version_of<ProcessesUtilization>(1), 0, 0, nullptr};
    EXPECT_EQ(machine().call("nvmlDeviceGetProcessesUtilizationInfo", card(), &use), 0);
    uint count = 0;
    EXPECT_EQ(machine().call("nvmlDeviceGetProcessUtilization", card(),
                             static_cast<ProcessSample *>(nullptr), &count, 0ull),
              kNotFound);
}

TEST_F(Values, of_events_and_fields)
{
    void *set = nullptr;
    EXPECT_EQ(machine().call("nvmlEventSetCreate", &set), 0);
    EXPECT_EQ(machine().number<ulonglong>("nvmlDeviceGetSupportedEventTypes", card()) & 8, 8u);
    EXPECT_EQ(machine().call("nvmlDeviceRegisterEvents", card(), 8ull, set), 0);
    EventData event{};
    EXPECT_EQ(machine().call("nvmlEventSetWait_v2", set, &event, 1u), kTimeout);
    EXPECT_EQ(machine().call("nvmlEventSetWait", set, &event, 1u), kTimeout);
    EXPECT_EQ(machine().call("nvmlEventSetFree", set), 0);
    EXPECT_EQ(machine().call("nvmlEventSetFree", set), kInvalidArgument);
    FieldValue values[2]{};
    values[0].field = 82;   // the memory's temperature
    values[1].field = 999;  // unknown field
    EXPECT_EQ(machine().call("nvmlDeviceGetFieldValues", card(), 2, &values[0]), 0);
    EXPECT_EQ(values[0].result, 0);
    EXPECT_EQ(values[0].value.number, 38u);
    EXPECT_EQ(values[1].result, kNotSupported);
}

// Comes last in this file: tests run in its order.
TEST_F(Values, were_asked_of_every_call_that_the_library_has)
{
    EXPECT_EQ(machine().call("nvmlInit"), 0);
    EXPECT_EQ(machine().call("nvmlInitWithFlags", 0u), 0);
    EXPECT_EQ(machine().call("nvmlShutdown"), 0);
    EXPECT_EQ(machine().call("nvmlShutdown"), 0);
    const std::set<std::string> called = machine().called();
    for (const std::string &name : exported(machine()))
        EXPECT_TRUE(name == "nvmlErrorString" || called.count(name)) << name << " was not tried";
}

}  // namespace
