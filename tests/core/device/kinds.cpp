// Kinds that are switched off, and the device that is used without being named. Each piece runs in a fresh process, since
// devices are opened once for ever.
#include "core/device/kinds.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/tensor/tensor.h"
#include "tests/core/expect_error.h"
#include "tests/core/fake_kinds.h"
#include "tests/core/fresh_process.h"

namespace yoke {
namespace {

using test::expect_error;
using test::fake;
using test::in_fresh_process;
using test::prepare;

// Stands in for the floors that tell what lives: whether the device was switched off while they were asked.
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
        detail::live_tensors = one_thing;
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
        detail::live_tensors = comes_late;
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
        disable("fake");  // nothing was left behind
    });
}

}  // namespace
}  // namespace yoke
