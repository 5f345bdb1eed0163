// Devices of specs, and reasons if no device fits. Each part runs in a fresh process, because devices open once for
// ever.
#include "core/select/select.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"
#include "core/device/availability.h"
#include "core/device/device.h"
#include "core/memory/memory.h"
#include "core/tensor/tensor.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_backend.h"
#include "tests/core/fake_kinds.h"
#include "tests/core/fresh_process.h"
#include "tests/core/select/remembered.h"

#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;
using test::in_fresh_process;
using test::logged;
using test::prepare;
using test::remember;

TEST(DeviceSelect, TheCpuIsAlwaysThere)
{
    in_fresh_process([] {
        prepare();
        Device &cpu = open_device("cpu");
        EXPECT_EQ(cpu.name, "cpu");
        EXPECT_TRUE(cpu.host);
        EXPECT_STREQ(Availability::of("cpu").text(), "");
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
        for (const char *spec : {"sim:3", "gpu", "", "CPU", "fake:", "fake:x", "fake:-1", "fake:1x",
                                 "fake:99999999999"})
            expect_error(YOKE_E_VALUE, {(std::string("'") + spec + "'").c_str(), "auto", "cuda:N"},
                         [&] { open_device(spec); });
        for (const char *spec : {"cpu:0", "cpu:"})
            expect_error(YOKE_E_VALUE, {(std::string("'") + spec + "'").c_str(), "use 'cpu'"},
                         [&] { open_device(spec); });
        expect_error(YOKE_E_VALUE, {"'auto:n=2'", "select(n=2)"}, [] { open_device("auto:n=2"); });
        expect_error(YOKE_E_UNAVAILABLE, {"uuid:GPU-89"}, [] { open_device("uuid:GPU-89"); });
    });
}

TEST(DeviceSelect, AKindWithoutDevicesSaysWhy)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 0;
        EXPECT_STREQ(Availability::of("fake").text(), "the fake was told to have none");
        expect_error(YOKE_E_UNAVAILABLE, {"fake", "told to have none"},
                     [] { open_device("fake"); });
        expect_error(YOKE_E_VALUE, {"'tpu'"}, [] { Availability::of("tpu").text(); });
    });
}

TEST(DeviceSelect, ADriverThatFailsIsAReasonAndStaysOne)
{
    in_fresh_process([] {
        prepare();
        fake.open_status = YOKE_E_UNAVAILABLE;
        const std::string reason = Availability::of("fake").text();
        EXPECT_NE(reason.find("told to fail"), std::string::npos) << reason;
        fake.open_status = YOKE_OK;
        EXPECT_EQ(Availability::of("fake").text(), reason);
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
        EXPECT_STREQ(Availability::of("cpu").text(), "");
    });
}

TEST(DeviceSelect, AKindThatPlatformsLeaveOutIsNotUsed)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "cpu", 1);
        prepare();
        const char *reason = Availability::of("fake").text();
        EXPECT_EQ(reason, Availability::of("fake").text());
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

TEST(DeviceSelect, AutoWithConstraintsGivesADeviceOrSaysWhyNot)
{
    in_fresh_process([] {
        prepare();
        fake.devices = 3;
        set_log_callback(remember, nullptr, nullptr);
        // The devices are alike and unknown to the inventory, so the last device is taken.
        EXPECT_EQ(open_device("auto:kind=fake").name, "fake:2");
        EXPECT_EQ(open_device("auto").name, "fake:2");
        EXPECT_EQ(select_devices("auto:n=2", 0).size(), 2u);
        EXPECT_EQ(select_devices("fake", 3).size(), 3u);
        expect_error(YOKE_E_UNAVAILABLE, {"only 3 of the 4"}, [] { select_devices("fake", 4); });
        expect_error(YOKE_E_VALUE, {"n=2", "3 devices"}, [] { select_devices("auto:n=2", 3); });
        expect_error(YOKE_E_UNAVAILABLE, {"min_cc=99", "fake:0–2", "not known", "no CPU can meet"},
                     [] { open_device("auto:min_cc=99"); });
        expect_error(YOKE_E_UNAVAILABLE, {"min_cc", "waiting does not help"},
                     [] { open_device("auto:min_cc=99,wait=24h"); });
        EXPECT_EQ(open_device("auto:name=other,kind=cpu").name, "cpu");
        EXPECT_EQ(logged, "");
        EXPECT_EQ(open_device("auto:max_util=50,fallback=silent").name, "cpu");
        EXPECT_EQ(logged, "");
    });
}

TEST(DeviceSelect, WaitingIsForWhatMayPassAlone)
{
    in_fresh_process([] {
        prepare();
        fake.capacity = 4096;
        fake.held = 4000;
        expect_error(YOKE_E_TIMEOUT, {"0.25 s", "96 B of free memory, 1 KiB was requested"},
                     [] { open_device("auto:kind=fake,min_free=1KiB,wait=250ms"); });
        for (const char *never : {"min_free=8KiB", "min_free=1KiB,min_cc=9.0", "max_util=0"})
            expect_error(YOKE_E_UNAVAILABLE, {"waiting does not help"},
                         [&] { open_device("auto:kind=fake,wait=24h," + std::string(never)); });
        std::thread other([] {
            usleep(200'000);
            fake.held = 0;
        });
        EXPECT_EQ(open_device("auto:min_free=1KiB,wait=30s").name, "fake:0");
        other.join();
    });
}

TEST(DeviceSelect, AFallbackToTheCpuIsWarnedOfOnceWithItsReason)
{
    in_fresh_process([] {
        prepare();
        fake.capacity = 1000;
        set_log_callback(remember, nullptr, nullptr);
        EXPECT_EQ(open_device("auto:min_free=1KiB").name, "cpu");
        EXPECT_NE(logged.find("1 device spec 'auto:min_free=1KiB' uses the cpu: "),
                  std::string::npos)
            << logged;
        EXPECT_NE(logged.find("1000 B of free memory, 1 KiB was requested"), std::string::npos)
            << logged;
        expect_error(YOKE_E_UNAVAILABLE, {"min_free=1KiB", "fake:0", "fallback=error"},
                     [] { open_device("auto:min_free=1KiB,fallback=error"); });
        EXPECT_EQ(open_device("auto:exclude=display,max_util=0").name, "cpu");
        EXPECT_NE(logged.find("1 device spec 'auto:exclude=display,max_util=0' uses the cpu: "),
                  std::string::npos)
            << logged;
        EXPECT_NE(logged.find("the utilization is not known"), std::string::npos) << logged;
        const std::string before = logged;
        open_device("auto:exclude=display,max_util=0");
        EXPECT_EQ(logged, before);
    });
}

TEST(DeviceSelect, AKindThatIsDisabledIsNeverOpened)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "fake,cpu", 1);
        prepare();
        disable("fake");
        EXPECT_EQ(open_device("auto").name, "cpu");
        EXPECT_EQ(open_device("auto:max_util=50").name, "cpu");
        EXPECT_EQ(fake.gets, 0);
        EXPECT_NE(
            std::string(Availability::of("fake").text()).find("disabled by yoke.disable('fake')"),
            std::string::npos);
        expect_error(YOKE_E_UNAVAILABLE, {"disabled by yoke.disable('fake')"},
                     [] { open_device("fake"); });
        disable("fake");
        enable("fake");
        EXPECT_STRNE(Availability::of("fake").text(), "");
        enable("fake");
        EXPECT_STREQ(Availability::of("fake").text(), "");
        EXPECT_EQ(open_device("auto").name, "fake:0");
        enable("fake");  // a second enable has no effect
        expect_error(YOKE_E_VALUE, {"cpu"}, [] { disable("cpu"); });
        expect_error(YOKE_E_VALUE, {"'fale'", "fake"}, [] { disable("fale"); });
    });
}

TEST(DeviceSelect, WhatLivesOnADeviceKeepsItsKindFromBeingDisabled)
{
    in_fresh_process([] {
        prepare();
        Device &device = open_device("fake");
        set_current_device(device);
        Tensor three = make_tensor(device, YOKE_F32, std::vector<int64_t>{3}, "test");
        {
            std::vector<Tensor> many;
            for (int i = 0; i < 6; ++i)
                many.push_back(make_tensor(device, YOKE_I64, std::vector<int64_t>{2, 5}, "test"));
            expect_error(YOKE_E_STATE, {"fake is in use", "[2, 5] int64 on fake:0", "and 2 more"},
                         [] { disable("fake"); });
        }
        expect_error(YOKE_E_STATE, {"[3] float32 on fake:0;"}, [] { disable("fake"); });
        EXPECT_STREQ(Availability::of("fake").text(), "");
        three = nullptr;
        void *block = raw_alloc(device, 100, nullptr);
        expect_error(YOKE_E_STATE, {"of fake:0"}, [] { disable("fake"); });
        raw_free(block);
        disable("fake");
        expect_error(YOKE_E_UNAVAILABLE, {"fake:0", "disabled"}, [&] { synchronize(device); });
        expect_error(YOKE_E_UNAVAILABLE, {"disabled"}, [&] { raw_alloc(device, 100, nullptr); });
        expect_error(YOKE_E_UNAVAILABLE, {"disabled"},
                     [&] { make_tensor(device, YOKE_F32, std::vector<int64_t>{3}, "test"); });
        enable("fake");
        make_tensor(device, YOKE_F32, std::vector<int64_t>{3}, "test");
    });
}

TEST(DeviceSelect, ADefaultThatWasDisabledIsChosenAnewUntilItIsEnabled)
{
    in_fresh_process([] {
        prepare();
        EXPECT_EQ(current_device().name, "fake:0");
        disable("fake");
        EXPECT_EQ(current_device().name, "cpu");
        enable("fake");
        EXPECT_EQ(current_device().name, "fake:0");
    });
}

TEST(DeviceSelect, AForkedChildKeepsTheCpuAndLosesTheRest)
{
    in_fresh_process([] {
        prepare();
        Device &device = open_device("fake");
        Device &cpu = open_device("cpu");
        const int32_t threads = num_threads();
        EXPECT_TRUE(test::passes_in_child([&] {
            EXPECT_TRUE(is_forked_child());
            EXPECT_EQ(fake.forks, 1);
            EXPECT_EQ(num_threads(), threads);
            synchronize(cpu);
            EXPECT_EQ(open_device("cpu").name, "cpu");
            EXPECT_EQ(open_device("auto").name, "cpu");
            EXPECT_NE(std::string(Availability::of("fake").text()).find("forked"),
                      std::string::npos);
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
