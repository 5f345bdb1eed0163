// A device, measured now: joined to its card by UUID or address. A missing device and an unknown device are reported
// apart.
#include "core/device/sample.h"

#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/tree.h"

#include <cmath>

namespace yoke {
namespace {

using test::expect_error;
using test::in_fresh_process;

class Sample : public test::Tree {
protected:
    // Makes a machine with a card and without NVML.
    void prepare()
    {
        const std::string card =
            device("pci0000:60/0000:60:01.0/0000:61:00.0", "10de", "2330", "030200");
        bind(card, "nvidia");
        write("/proc/driver/nvidia/gpus/0000:61:00.0/information",
              "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-abc\nDevice Minor: \t 0\n");
        write("/proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
        setenv("YOKE_SYSROOT", root.prefix.c_str(), 1);
        unsetenv("YOKE_NVML_PATH");
    }
    // Runs `body` and calls TearDown, because a separate process does not reach TearDown itself.
    template <class Body>
    void in_own_process(const Body &body)
    {
        in_fresh_process([&] {
            prepare();
            body();
            TearDown();
        });
    }
    static void name(Device &device, const char *uuid, const char *pci)
    {
        device.name = "cuda:0";
        put(device.info.uuid, uuid);
        put(device.info.pci, pci);
    }
};

TEST_F(Sample, ADeviceIsJoinedByUuidOrAddressHoweverItIsWritten)
{
    in_own_process([&] {
        for (const auto &[uuid, pci] :
             {std::pair{"GPU-abc", "0000:61:00.0"}, std::pair{"MIG-ABC", ""},
              std::pair{"GPU-abc", ""}, std::pair{"", "00000000:61:00.0"}}) {
            Device device;
            name(device, uuid, pci);
            EXPECT_STREQ(sample_device(device).info.name, "NVIDIA H100");
        }
    });
}

TEST_F(Sample, ADeviceThatNothingTellsOfIsUnavailable)
{
    in_own_process([&] {
        Device device;
        name(device, "", "");
        expect_error(YOKE_E_UNAVAILABLE, {"cuda:0", "neither a UUID nor a PCI address"},
                     [&] { sample_device(device); });
        name(device, "GPU-other", "0000:99:00.0");
        expect_error(YOKE_E_UNAVAILABLE, {"GPU-other", "YOKE_NVML_PATH names no library"},
                     [&] { sample_device(device); });
    });
}

TEST_F(Sample, ADeviceWhoseCardVanishedIsLost)
{
    in_own_process([&] {
        std::filesystem::remove(root.path("/sys/bus/pci/devices/0000:61:00.0"));
        Device device;
        name(device, "GPU-abc", "0000:61:00.0");
        expect_error(YOKE_E_DEVICE_LOST, {"cuda:0", "is gone", "Xid 79"},
                     [&] { sample_device(device); });
    });
}

TEST_F(Sample, TheCpuTellsItsShareOfWorkSinceTheLastSample)
{
    in_own_process([&] {
        write("/proc/cpuinfo", "vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654\n");
        write("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\n");
        write("/sys/devices/system/node/online", "0\n");
        Device cpu;
        cpu.host = true;
        const yoke_card_info first = sample_device(cpu).info;
        EXPECT_STREQ(first.name, "AMD EPYC 9654");
        EXPECT_STREQ(first.vendor, "amd");
        EXPECT_EQ(first.memory_used, 750 * 1024);
        EXPECT_EQ(first.numa_node, 0);
        EXPECT_TRUE(std::isnan(first.utilization));
        write("/proc/stat", "cpu  160 0 120 900 20 0 0 0 0 0\n");
        EXPECT_DOUBLE_EQ(sample_device(cpu).info.utilization, 0.4);
        write("/sys/devices/system/node/online", "0-1\n");
        EXPECT_EQ(sample_device(cpu).info.numa_node, -1);
    });
}

}  // namespace
}  // namespace yoke
