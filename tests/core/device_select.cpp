// From specs to devices, and why there is none. Each piece runs in a fresh process, since devices
// are opened once for ever.
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"
#include "core/device/device.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fresh_process.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;
using test::in_fresh_process;

// A CPU for programs that are linked without the library's own; it takes no orders.
yoke_status get_fake_cpu(const yoke_host *, const yoke_backend **out)
{
    static yoke_backend table = test::fake_table("cpu");
    table.device_count = [](int32_t *count) {
        *count = 1;
        return YOKE_OK;
    };
    table.device_open = [](int32_t, void **device) {
        *device = &table;
        return YOKE_OK;
    };
    table.after_fork = [] {};
    *out = &table;
    return YOKE_OK;
}

// The fake beside the library's own CPU backend.
void prepare()
{
    register_backend("cpu", get_fake_cpu);
    register_backend("fake", test::get_fake);
}

std::string logged;
void remember(void *, int32_t level, const char *message)
{
    logged += std::to_string(level) + " " + message + "\n";
}

TEST(DeviceSelect, TheCpuIsAlwaysThere)
{
    in_fresh_process([] {
        prepare();
        Device &cpu = open_device("cpu");
        EXPECT_EQ(cpu.name, "cpu");
        EXPECT_TRUE(cpu.host);
        EXPECT_STREQ(why_unavailable("cpu"), "");
        EXPECT_EQ(&open_device("cpu"), &cpu);
        EXPECT_EQ(find_device(cpu.handle), &cpu);
        synchronize(cpu);
    });
}

TEST(DeviceSelect, DevicesAreNamedByKindAndNumber)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 3;
        EXPECT_EQ(open_device("fake").name, "fake:0");
        EXPECT_EQ(open_device("fake:2").index, 2);
        EXPECT_EQ(devices_of("fake").size(), 3u);
        EXPECT_EQ(fake.opens, 3);
        EXPECT_EQ(opened_devices().size(), 3u);
        expect_error(YOKE_E_UNAVAILABLE, {"fake:3", "fake:2"}, [] { open_device("fake:3"); });
    });
}

TEST(DeviceSelect, OtherSpecsAreRefusedByName)
{
    in_fresh_process([] {
        prepare();
        for (const char *spec :
             {"sim:3", "gpu", "", "CPU", "uuid:GPU-89", "auto:n=2", "cpu:0",
              "cpu:", "fake:", "fake:x", "fake:-1", "fake:1x", "fake:99999999999"})
            expect_error(YOKE_E_VALUE, {(std::string("'") + spec + "'").c_str(), "auto", "cuda:N"},
                         [&] { open_device(spec); });
    });
}

TEST(DeviceSelect, AKindWithoutDevicesSaysWhy)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 0;
        EXPECT_STREQ(why_unavailable("fake"), "the fake was told to have none");
        expect_error(YOKE_E_UNAVAILABLE, {"fake", "told to have none"},
                     [] { open_device("fake"); });
        expect_error(YOKE_E_VALUE, {"'tpu'"}, [] { why_unavailable("tpu"); });
    });
}

TEST(DeviceSelect, ADriverThatFailsIsAReasonAndStaysOne)
{
    in_fresh_process([] {
        prepare();
        fake.open_status = YOKE_E_UNAVAILABLE;
        const std::string reason = why_unavailable("fake");
        EXPECT_NE(reason.find("told to fail"), std::string::npos) << reason;
        fake.open_status = YOKE_OK;
        EXPECT_EQ(why_unavailable("fake"), reason);
    });
}

TEST(DeviceSelect, AutoTakesTheFirstKindThatWorks)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "fake,cpu", 1);
        prepare();
        EXPECT_EQ(open_device("auto").name, "fake:0");
        EXPECT_EQ(current_device().name, "fake:0");
    });
}

TEST(DeviceSelect, AutoWarnsOnceOfWhatIsBrokenOnTheWay)
{
    in_fresh_process([] {
        prepare();
        fake.open_status = YOKE_E_DEVICE_LOST;
        set_log_callback(remember, nullptr, nullptr);
        EXPECT_EQ(open_device("auto").name, "cpu");
        const size_t first = logged.find("1 device 'auto' does not use fake: ");
        EXPECT_NE(first, std::string::npos) << logged;
        EXPECT_NE(logged.find("told to fail"), std::string::npos) << logged;
        const std::string before = logged;
        open_device("auto");
        EXPECT_EQ(logged, before);
    });
}

TEST(DeviceSelect, AutoMentionsAnAbsentKindAtLevelInfo)
{
    in_fresh_process([] {
        setenv("YOKE_LOG", "info", 1);
        prepare();
        fake.devices = 0;
        set_log_callback(remember, nullptr, nullptr);
        open_device("auto");
        EXPECT_NE(logged.find("2 device 'auto' does not use fake: the fake was told to have none"),
                  std::string::npos)
            << logged;
    });
}

TEST(DeviceSelect, ANamedPlatformThatFailsIsAnError)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "fake,cpu", 1);
        prepare();
        fake.devices = 0;
        for (const char *spec : {"auto", "cpu", "fake"})
            expect_error(YOKE_E_UNAVAILABLE, {"YOKE_PLATFORMS", "fake", "told to have none"},
                         [&] { open_device(spec); });
        EXPECT_STREQ(why_unavailable("cpu"), "");
    });
}

TEST(DeviceSelect, AKindThatPlatformsLeaveOutIsNotUsed)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "cpu", 1);
        prepare();
        const char *reason = why_unavailable("fake");
        EXPECT_EQ(reason, why_unavailable("fake"));
        EXPECT_EQ(fake.gets, 0);
        expect_error(YOKE_E_UNAVAILABLE, {"YOKE_PLATFORMS is 'cpu'", "fake"},
                     [] { open_device("fake:0"); });
        EXPECT_EQ(open_device("auto").name, "cpu");
    });
}

TEST(DeviceSelect, TheFirstDeviceComesFromTheConfiguration)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 2;
        set_config("YOKE_DEVICE", "fake:7");
        expect_error(YOKE_E_UNAVAILABLE, {"YOKE_DEVICE is 'fake:7'"}, [] { current_device(); });
        set_config("YOKE_DEVICE", "fake:1");
        EXPECT_EQ(current_device().name, "fake:1");
        expect_error(YOKE_E_STATE, {"YOKE_DEVICE", "fake:1"},
                     [] { set_config("YOKE_DEVICE", "cpu"); });
    });
}

TEST(DeviceSelect, EachThreadHasItsOwnCurrentDevice)
{
    in_fresh_process([] {
        prepare();
        set_config("YOKE_DEVICE", "cpu");
        set_current_device(open_device("fake"));
        EXPECT_EQ(current_device().name, "fake:0");
        std::thread([] { EXPECT_EQ(current_device().name, "cpu"); }).join();
    });
}

TEST(DeviceSelect, AnUnreadableValueStopsTheFirstUse)
{
    in_fresh_process([] {
        setenv("YOKE_LOG", "loud", 1);
        prepare();
        expect_error(YOKE_E_VALUE, {"YOKE_LOG", "'loud'", "error, warn, info or debug"},
                     [] { open_device("cpu"); });
    });
}

TEST(DeviceSelect, AMissingKernelIsNamed)
{
    in_fresh_process([] {
        prepare();
        const Device &device = open_device("fake");
        EXPECT_NE(kernel_of(device, 0, "first"), nullptr);
        for (const int32_t op : {1, -1, YOKE_OP_COUNT})
            expect_error(YOKE_E_UNSUPPORTED, {"fake has no kernel for softmax"},
                         [&] { kernel_of(device, op, "softmax"); });
    });
}

TEST(DeviceSelect, AForkedChildKeepsTheCpuAndLosesTheRest)
{
    in_fresh_process([] {
        prepare();
        Device &device = open_device("fake");
        Device &cpu = open_device("cpu");
        EXPECT_TRUE(test::passes_in_child([&] {
            EXPECT_TRUE(is_forked_child());
            EXPECT_EQ(fake.forks, 1);
            EXPECT_EQ(num_threads(), 1);
            synchronize(cpu);
            EXPECT_EQ(open_device("cpu").name, "cpu");
            EXPECT_EQ(open_device("auto").name, "cpu");
            EXPECT_NE(std::string(why_unavailable("fake")).find("forked"), std::string::npos);
            expect_error(YOKE_E_FORKED, {"fake:0", "forked"}, [&] { synchronize(device); });
            expect_error(YOKE_E_FORKED, {"fake"}, [] { open_device("fake"); });
            expect_error(YOKE_E_FORKED, {"cuda"}, [] { open_device("cuda"); });
        }));
        EXPECT_FALSE(is_forked_child());
        EXPECT_EQ(fake.forks, 0);
    });
}

TEST(DeviceSelect, AForkBeforeFirstUseLeavesAFreshProcess)
{
    in_fresh_process([] {
        prepare();
        EXPECT_TRUE(test::passes_in_child([] {
            EXPECT_FALSE(is_forked_child());
            EXPECT_EQ(open_device("fake").name, "fake:0");
        }));
    });
}

}  // namespace
}  // namespace yoke
