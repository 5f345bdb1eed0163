// Late work of the fake runtime: such work begins in the stream's order, ends under a condition, and goes on without
// a waiting thread.
#include <atomic>
#include <chrono>
#include <functional>

#include "tests/fakes/cuda/alone.h"

namespace yoke::test {

namespace {

struct Kernel {
    std::atomic<int> begun{0}, ended{0}, dropped{0};
    std::atomic<bool> may_end{false};
};

template <std::atomic<int> Kernel::*Count>
int count(void *kernel)
{
    ++(static_cast<Kernel *>(kernel)->*Count);
    return 0;
}

const fake_late kLate = {count<&Kernel::begun>,
                         [](void *kernel) -> int { return static_cast<Kernel *>(kernel)->may_end; },
                         count<&Kernel::ended>,
                         [](void *kernel) { count<&Kernel::dropped>(kernel); }};

// Device with a runtime known to the driver.
struct LateDevice : Device {
    const fake_runtime *runtime = call<const fake_runtime *>("fake_runtime_calls");

    cudaError_t launch(cudaStream_t stream, Kernel &kernel, const void *block = nullptr)
    {
        const void *const used[] = {block};
        return runtime->enqueue_late(0, stream, &kLate, &kernel, used, sizeof used);
    }
};

bool comes(const std::function<bool()> &condition)
{
    for (int i = 0; i < 5000 && !condition(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
}

}  // namespace

TEST(LateWork, GoesOnWithoutAnyThreadThatWaits)
{
    in_fresh_process([] {
        LateDevice device;
        const cudaStream_t stream = device.stream();
        Kernel kernel;
        char *const block = device.block();
        EXPECT_EQ(cudaMemsetAsync(block, 1, 8, stream), cudaSuccess);
        EXPECT_EQ(device.launch(stream, kernel), cudaSuccess);
        EXPECT_TRUE(comes([&] { return kernel.begun == 1; }));
        EXPECT_EQ(block[7], 1) << "what stood before it in its stream";
        EXPECT_EQ(kernel.ended, 0);
        kernel.may_end = true;
        EXPECT_TRUE(comes([&] { return kernel.dropped == 1; }));
        EXPECT_EQ(kernel.ended, 1);
        EXPECT_EQ(kernel.begun, 1);
    });
}

TEST(LateWork, HoldsItsStreamAndNoOtherThread)
{
    in_fresh_process([] {
        LateDevice device;
        const cudaStream_t stream = device.stream(), other = device.stream();
        const cudaEvent_t event = device.event();
        Kernel kernel;
        char *const block = device.block();
        EXPECT_EQ(device.launch(stream, kernel, block), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
            EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
        }
        EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue) << "it is in use";
        std::atomic<bool> waited{false};
        std::thread waiting([&] {
            device.enter();
            EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
            waited = true;
        });
        EXPECT_EQ(cudaMemsetAsync(device.block(), 1, 8, other), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
        EXPECT_FALSE(waited);
        kernel.may_end = true;
        waiting.join();
        EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
        EXPECT_EQ(cudaFree(block), cudaSuccess);
    });
}

TEST(LateWork, OfADeviceIsDoneInTheOrderOfItsLaunches)
{
    in_fresh_process([] {
        LateDevice device;
        Kernel first, second;
        EXPECT_EQ(device.launch(device.stream(), first), cudaSuccess);
        EXPECT_EQ(device.launch(device.stream(), second), cudaSuccess);
        EXPECT_TRUE(comes([&] { return first.begun == 1; }));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(second.begun, 0) << "the first one has the device";
        first.may_end = second.may_end = true;
        EXPECT_TRUE(comes([&] { return second.dropped == 1; }));
    });
}

TEST(LateWork, EndsWithItsDevice)
{
    in_fresh_process([] {
        LateDevice device;
        const cudaStream_t stream = device.stream();
        Kernel kernel;
        EXPECT_EQ(device.launch(stream, kernel), cudaSuccess);
        EXPECT_TRUE(comes([&] { return kernel.begun == 1; }));
        device.call<decltype(&::fake_lose)>("fake_lose")(0, cudaErrorIllegalAddress);
        EXPECT_TRUE(comes([&] { return kernel.dropped == 1; }));
        EXPECT_EQ(kernel.ended, 0);
        EXPECT_EQ(device.launch(stream, kernel), cudaErrorIllegalAddress);
    });
}

TEST(LateWork, MakesTheRuntimeHoldMoreThanItsMostWhileItHangs)
{
    in_fresh_process([] {
        LateDevice device;
        const cudaStream_t stream = device.stream();
        Kernel kernel;
        char *const block = device.block();
        EXPECT_EQ(device.launch(stream, kernel), cudaSuccess);
        for (int i = 0; i < 300; ++i) EXPECT_EQ(cudaMemsetAsync(block, i, 8, stream), cudaSuccess);
        EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
        kernel.may_end = true;
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(block[0], static_cast<char>(299));
    });
}

TEST(LateWork, IsNotAForkedChilds)
{
    if (!kMayFork) GTEST_SKIP() << "ThreadSanitizer ends at a fork with threads";
    in_fresh_process([] {
        LateDevice device;
        const cudaStream_t stream = device.stream();
        Kernel kernel;
        EXPECT_EQ(device.launch(stream, kernel), cudaSuccess);
        EXPECT_TRUE(passes_in_child([&] {
            Kernel own;
            own.may_end = true;
            EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "it would hang";
            EXPECT_EQ(device.launch(device.stream(), own), cudaSuccess);
            EXPECT_TRUE(comes([&] { return own.dropped == 1; })) << "by a thread of its own";
        }));
        kernel.may_end = true;
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(kernel.ended, 1);
    });
}

TEST(LateWork, IsRefusedInACaptureAndOnAStreamOfAnotherDevice)
{
    in_fresh_process([] {
        setenv("FAKE_CUDA_DEVICES", "9.0,9.0", 1);
        LateDevice device;
        const cudaStream_t stream = device.stream();
        Kernel kernel;
        EXPECT_EQ(device.runtime->enqueue_late(1, stream, &kLate, &kernel, nullptr, 0),
                  cudaErrorInvalidResourceHandle);
        EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
        EXPECT_EQ(device.launch(stream, kernel), cudaErrorStreamCaptureUnsupported);
        EXPECT_EQ(kernel.dropped, 2);
    });
}

}  // namespace yoke::test
