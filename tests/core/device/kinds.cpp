// Kinds switched off, and the default device. Each part runs in a fresh process, because devices open once for ever.
#include "core/device/kinds.h"
#include "core/base/config.h"
#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/select/select.h"
#include "core/tensor/tensor.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_kinds.h"
#include "tests/core/fresh_process.h"

#include <unistd.h>
#include <atomic>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::fake;
using test::in_fresh_process;
using test::prepare;

// Records of a stand-in for the layers that report live objects: whether the device was off at each call.
std::vector<bool> off_while_asked;
int64_t one_thing(Device &device, size_t most, std::vector<std::string> &names)
{
    off_while_asked.push_back(device.disabled.load());
    if (most) names.push_back("a thing");
    return 1;
}

TEST(DeviceKinds, ADisableThatFailsIsNeverNoticedByWhoWorksOnTheDevice)
{
    in_fresh_process([] {
        prepare();
        const Device &device = open_device("fake");
        lent.live_tensors = one_thing;
        expect_error(YOKE_E_STATE, {"fake is in use: a thing"}, [] { disable("fake"); });
        EXPECT_EQ(off_while_asked, std::vector<bool>{false});
        EXPECT_FALSE(device.disabled.load());
    });
}

int64_t comes_late(Device &device, size_t most, std::vector<std::string> &names)
{
    return device.disabled.load() ? one_thing(device, most, names) : 0;
}

TEST(DeviceKinds, WhatComesToLifeDuringADisableKeepsTheKindOn)
{
    in_fresh_process([] {
        prepare();
        const Device &device = open_device("fake");
        lent.live_tensors = comes_late;
        expect_error(YOKE_E_STATE, {"fake is in use: a thing"}, [] { disable("fake"); });
        EXPECT_EQ(off_while_asked, std::vector<bool>{true});
        EXPECT_FALSE(device.disabled.load());
    });
}

TEST(DeviceKinds, ATensorOfAKindThatWasJustSwitchedOffIsRefusedBeforeItHasMemory)
{
    in_fresh_process([] {
        prepare();
        Device &device = open_device("fake");
        disable("fake");
        const std::vector<int64_t> shape{3};
        expect_error(YOKE_E_UNAVAILABLE, {"fake:0", "disabled"},
                     [&] { make_layout(device, YOKE_F32, shape, nullptr, "test"); });
        disable("fake");  // the refused tensor left no object behind
    });
}

std::string logged;
void remember(void *, int32_t level, const char *message)
{
    logged += std::to_string(level) + " " + message + "\n";
}

TEST(DeviceKinds, AFirstUseWhileAKindIsOffDecidesNothingForTheTimeAfter)
{
    in_fresh_process([] {
        prepare();
        disable("fake");
        EXPECT_EQ(current_device().name, "cpu");
        set_config("YOKE_DEVICE", "cpu");  // the default was not fixed either
        set_config("YOKE_DEVICE", "");
        enable("fake");
        EXPECT_EQ(current_device().name, "fake:0");
        disable("fake");
        EXPECT_EQ(current_device().name, "cpu");
        enable("fake");
        EXPECT_EQ(current_device().name, "fake:0");
    });
}

TEST(DeviceKinds, AFaultIsWarnedOfThoughTheKindWasSwitchedOffBefore)
{
    in_fresh_process([] {
        prepare();
        fake.open_status = YOKE_E_DEVICE_LOST;
        set_log_callback(remember, nullptr, nullptr);
        disable("fake");
        EXPECT_EQ(open_device("auto").name, "cpu");
        EXPECT_EQ(logged, "");
        enable("fake");
        EXPECT_EQ(open_device("auto").name, "cpu");
        EXPECT_NE(logged.find("1 device 'auto' does not use fake: "), std::string::npos) << logged;
    });
}

// Backends with slow, counted answers about memory: each choice among devices asks.
std::atomic<int> looks{0};
yoke_status look_slowly(void *device, uint64_t *free_bytes, uint64_t *total)
{
    ++looks;
    usleep(20'000);
    return test::fake_entries::mem_info(device, free_bytes, total);
}

yoke_status get_slow(const yoke_host *host, const yoke_backend **out)
{
    static yoke_backend table = test::fake_table("fake");
    fake.host = host;
    table.mem_info = look_slowly;
    *out = &table;
    return YOKE_OK;
}

// Another kind, with less memory.
yoke_status get_other(const yoke_host *, const yoke_backend **out)
{
    static yoke_backend table = test::fake_table("other");
    table.device_open = [](int32_t, void **device) {
        *device = &table;
        return YOKE_OK;
    };
    table.mem_info = [](void *, uint64_t *free_bytes, uint64_t *total) {
        ++looks;
        *free_bytes = *total = 1 << 20;
        return YOKE_OK;
    };
    *out = &table;
    return YOKE_OK;
}

TEST(DeviceKinds, TheDefaultDeviceIsChosenByOneThreadForAll)
{
    in_fresh_process([] {
        register_backend("fake", get_slow);
        register_backend("cpu", test::get_fake_cpu);
        fake.devices = 2;
        set_config("YOKE_DEVICE", "auto:kind=fake,min_free=1KiB");
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([] { EXPECT_EQ(current_device().name, "fake:1"); });
        for (std::thread &thread : threads) thread.join();
        EXPECT_EQ(looks, 3);  // at both, and whether the chosen device is still there
    });
}

TEST(DeviceKinds, WhatStandsInForADefaultThatIsOffIsChosenOnceNotForEachTensor)
{
    in_fresh_process([] {
        prepare();
        register_backend("other", get_other);
        set_config("YOKE_DEVICE", "auto:min_free=1KiB");
        EXPECT_EQ(current_device().name, "fake:0");
        for (int round = 0; round < 2; ++round) {
            disable("fake");
            looks = 0;
            EXPECT_EQ(current_device().name, "other:0");
            const int first = looks;
            EXPECT_GT(first, 0);
            for (int i = 0; i < 100; ++i) EXPECT_EQ(current_device().name, "other:0");
            EXPECT_EQ(looks, first);
            enable("fake");
            EXPECT_EQ(current_device().name, "fake:0");
        }
    });
}

}  // namespace
}  // namespace yoke
