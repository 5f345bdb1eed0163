// Variables of the configuration: the reader of a variable checks the value, before a call fails because of it.
#include "core/base/config.h"
#include "core/device/device.h"
#include "core/select/select.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;

TEST(DeviceVariables, WhatNoDeviceIsOpenedByIsFoundByACheck)
{
    struct {
        const char *name, *value, *part;
    } const cases[] = {
        {"YOKE_DEVICE", "bogus", "bogus"},
        {"YOKE_DEVICE", "auto:n=3", "asks for n=3 devices"},
        {"YOKE_DEVICE", "auto:min_fre=1GiB", "min_free"},
        {"YOKE_PLATFORMS", "CUDA", "no device kind 'CUDA'"},
        {"YOKE_PLATFORMS", "cudaa,cpu", "no device kind 'cudaa'"},
    };
    for (const auto &c : cases)
        in_fresh_process([&] {
            setenv(c.name, c.value, 1);
            const std::string said = std::string(c.name) + " is '" + c.value + "'";
            expect_error(YOKE_E_VALUE, {said.c_str(), c.part}, [] { check_config(); });
            expect_error(YOKE_E_VALUE, {said.c_str(), c.part}, [] { current_device(); });
        });
}

TEST(DeviceVariables, ACheckUsesNone)
{
    in_fresh_process([] {
        setenv("YOKE_PLATFORMS", "cpu", 1);
        setenv("YOKE_DEVICE", "cpu", 1);
        check_config();
        set_config("YOKE_PLATFORMS", "cpu,cuda");
        set_config("YOKE_DEVICE", "auto");
    });
}

TEST(DeviceVariables, AFolderOfLeasesIsTheSameForEveryProcess)
{
    for (const char *folder : {"leases", "./leases", "~/leases"}) {
        expect_error(YOKE_E_VALUE, {"YOKE_LEASE_DIR is", folder, "an absolute path"},
                     [&] { set_config("YOKE_LEASE_DIR", folder); });
        in_fresh_process([&] {
            setenv("YOKE_LEASE_DIR", folder, 1);
            expect_error(YOKE_E_VALUE, {"YOKE_LEASE_DIR is", folder},
                         [] { config("YOKE_LEASE_DIR"); });
        });
    }
}

}  // namespace
}  // namespace yoke
