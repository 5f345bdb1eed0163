// Waits for a device while its graphs are captured: lane by lane, and never for the whole device.
#include "core/device/capture.h"
#include "tests/core/expect_error.h"
#include "tests/core/stream_backend.h"

#include <thread>

namespace yoke {
namespace {

using test::fake;
using test::fake_streams;
using test::in_fresh_process_with_streams;
using Lines = std::vector<std::string>;

TEST(DeviceCapture, TheCacheIsEmptiedWithoutAWaitForTheWholeDevice)
{
    in_fresh_process_with_streams([](Device &device, Device &other) {
        Block *block = allocate_block(device, 1 << 20, 0);
        free_block(device, block);
        const Ref<Stream> side = make_stream(device, 0);
        static_cast<void>(make_stream(device, 0));  // rests
        test::stream_entries::Thing native{77};
        const Ref<Stream> wrapped = wrap_stream(device, &native);
        {
            const CaptureStream capture(device);
            const int whole = fake.waits, frees = fake.frees;
            fake_streams.take();
            empty_cache(&device);
            EXPECT_EQ(fake_streams.take(),
                      (Lines{"sync s0", "sync s1", "sync s2", "record s77 e1", "join e1"}));
            EXPECT_EQ(fake.waits, whole);
            EXPECT_EQ(fake.frees, frees + 1) << "the block went back all the same";
            synchronize(other);
            EXPECT_EQ(fake.waits, whole + 1) << "of another device nothing is captured";
        }
        synchronize(device);
        EXPECT_EQ(fake_streams.take(), Lines{});
    });
}

TEST(DeviceCapture, MemoryThatRunsOutIsGivenBackWithoutIt)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        Block *block = allocate_block(device, 1 << 20, 0);
        free_block(device, block);
        fake.capacity = 3 << 19;
        const CaptureStream capture(device);
        const int whole = fake.waits;
        Block *larger = allocate_block(device, 5 << 18, 0);
        EXPECT_EQ(fake.waits, whole);
        free_block(device, larger);
    });
}

TEST(DeviceCapture, CapturesAreCounted)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const CaptureStream first(device);
        const int whole = fake.waits;
        {
            const CaptureStream second(device);
        }
        std::thread([&] { synchronize(device); }).join();
        EXPECT_EQ(fake.waits, whole) << "one of two captures goes on";
        EXPECT_EQ(fake_streams.take(), Lines{"sync s0"});
    });
}

std::atomic<bool> is_waiting{false}, may_end{false}, is_capturing{false};

yoke_status wait_long(void *)
{
    is_waiting = true;
    while (!may_end) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_capturing) << "the capture began beside a wait for the whole device";
    return YOKE_OK;
}

TEST(DeviceCapture, ACaptureBeginsWhenNobodyWaitsForTheWholeDevice)
{
    in_fresh_process_with_streams([](Device &device, Device &) {
        const_cast<yoke_backend *>(device.backend)->device_synchronize = wait_long;
        std::thread waits([&] { synchronize(device); });
        while (!is_waiting) std::this_thread::yield();
        std::thread captures([&] {
            may_end = true;
            const CaptureStream capture(device);
            is_capturing = true;
        });
        waits.join();
        captures.join();
        EXPECT_TRUE(is_capturing);
    });
}

}  // namespace
}  // namespace yoke
