// The fake runtime by itself. The runtime must punish all mistakes punished by CUDA, so a module without failures
// over the fake is right.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/core/fresh_process.h"
#include "tests/fakes/cuda/alone.h"

namespace yoke::test {

namespace {

struct Capture : Device {
    cudaStream_t captured = stream();
    cudaGraph_t graph = nullptr;

    explicit Capture(cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed)
    {
        EXPECT_EQ(cudaStreamBeginCapture(captured, mode), cudaSuccess);
    }
    cudaError_t end() { return cudaStreamEndCapture(captured, &graph); }
};

cudaError_t allocate(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal)
{
    void *block = nullptr;
    cudaThreadExchangeStreamCaptureMode(&mode);
    const cudaError_t error = cudaMalloc(&block, 64);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

}  // namespace

TEST(CaptureModes, AreHonouredAcrossThreads)
{
    struct Case {
        cudaStreamCaptureMode capture, thread;
        bool same_thread, breaks;
    };
    constexpr auto kGlobal = cudaStreamCaptureModeGlobal, kLocal = cudaStreamCaptureModeThreadLocal,
                   kRelaxed = cudaStreamCaptureModeRelaxed;
    const Case cases[] = {{kGlobal, kGlobal, true, true},   {kGlobal, kGlobal, false, true},
                          {kGlobal, kLocal, true, true},    {kGlobal, kLocal, false, false},
                          {kGlobal, kRelaxed, true, false}, {kGlobal, kRelaxed, false, false},
                          {kLocal, kGlobal, true, true},    {kLocal, kGlobal, false, false},
                          {kLocal, kRelaxed, true, false},  {kRelaxed, kGlobal, true, false},
                          {kRelaxed, kGlobal, false, false}};
    for (const Case &one : cases)
        EXPECT_TRUE(passes_in_child([&] {
            Capture capture(one.capture);
            const auto expected = one.breaks ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
            if (one.same_thread)
                EXPECT_EQ(allocate(one.thread), expected);
            else
                capture.in_another_thread([&] { EXPECT_EQ(allocate(one.thread), expected); });
            EXPECT_EQ(capture.end(), one.breaks ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
        })) << one.capture
            << " " << one.thread << " " << one.same_thread;
}

TEST(CaptureModes, EveryUnsafeCallBreaksACapture)
{
    in_fresh_process([] {
        Device device;
        const cudaStream_t stream = device.stream(), other = device.stream();
        const cudaEvent_t event = device.event();
        void *block = device.block(), *pinned = nullptr, *made = nullptr;
        EXPECT_EQ(cudaHostAlloc(&pinned, 64, cudaHostAllocPortable), cudaSuccess);
        const std::function<cudaError_t()> calls[] = {
            [&] { return cudaFree(block); },
            [&] { return cudaFreeHost(pinned); },
            [&] { return cudaHostAlloc(&made, 64, cudaHostAllocPortable); },
            [&] { return cudaStreamQuery(other); },
            [&] { return cudaStreamSynchronize(other); },
            [&] { return cudaEventQuery(event); },
            [&] { return cudaEventSynchronize(event); }};
        for (const auto &call : calls) {
            cudaGraph_t graph = nullptr;
            EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
            EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
            EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
        }
    });
}

TEST(CaptureModes, OnlyARelaxedCaptureEndsInAnotherThread)
{
    in_fresh_process([] {
        Capture strict(cudaStreamCaptureModeGlobal);
        strict.in_another_thread(
            [&] { EXPECT_EQ(strict.end(), cudaErrorStreamCaptureWrongThread); });
        EXPECT_EQ(strict.end(), cudaSuccess);
        Capture relaxed;
        relaxed.in_another_thread([&] { EXPECT_EQ(relaxed.end(), cudaSuccess); });
    });
}

// ---- forks ----------------------------------------------------------------------------------------------------------

namespace {

// Capture joined by a second stream, through an event.
struct Fork : Capture {
    cudaStream_t second = stream();
    cudaEvent_t there = event(), back = event();
    char *x = nullptr;

    Fork()
    {
        x = block();
        EXPECT_EQ(cudaMemsetAsync(x, 1, 8, captured), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(there, captured), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(second, there, 0), cudaSuccess);
    }
    void work() { EXPECT_EQ(cudaMemsetAsync(x, 2, 8, second), cudaSuccess); }
    void join()
    {
        EXPECT_EQ(cudaEventRecord(back, second), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(captured, back, 0), cudaSuccess);
    }
};

}  // namespace

TEST(Forks, MustBeJoinedBeforeTheirCaptureEnds)
{
    in_fresh_process([] {
        Fork fork;
        EXPECT_EQ(fork.end(), cudaErrorStreamCaptureUnjoined) << "without work of its own, too";
        EXPECT_EQ(fork.graph, nullptr);
    });
    in_fresh_process([] {
        Fork fork;
        fork.work();
        fork.join();
        EXPECT_EQ(fork.end(), cudaSuccess);
    });
    in_fresh_process([] {
        Fork fork;
        fork.join();
        fork.work();
        EXPECT_EQ(fork.end(), cudaErrorStreamCaptureUnjoined) << "after the join there was more";
        fork.work();
        EXPECT_EQ(cudaStreamSynchronize(fork.second), cudaSuccess) << "the stream serves again";
    });
}

TEST(Forks, MayBeJoinedByWayOfAnother)
{
    in_fresh_process([] {
        Fork fork;
        const cudaStream_t third = fork.stream();
        const cudaEvent_t event = fork.event();
        fork.work();
        EXPECT_EQ(cudaEventRecord(event, fork.second), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(third, event, 0), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(fork.back, third), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(fork.captured, fork.back, 0), cudaSuccess);
        EXPECT_EQ(fork.end(), cudaSuccess);
    });
}

TEST(Forks, EndNoCaptureThatBeganElsewhere)
{
    in_fresh_process([] {
        Fork fork;
        EXPECT_EQ(cudaStreamEndCapture(fork.second, &fork.graph), cudaErrorStreamCaptureUnmatched);
        fork.join();
        EXPECT_EQ(fork.end(), cudaSuccess);
    });
}

TEST(Forks, AnEventOfOutsideIsNoWayIntoACaptureEvenWhenItIsReached)
{
    in_fresh_process([] {
        Device device;
        const cudaStream_t outside = device.stream();
        const cudaEvent_t event = device.event();
        EXPECT_EQ(cudaEventRecord(event, outside), cudaSuccess);
        EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
        EXPECT_EQ(cudaStreamWaitEvent(device.stream(), event, 0), cudaSuccess);
        Capture capture;
        EXPECT_EQ(cudaStreamWaitEvent(capture.captured, event, 0), cudaErrorStreamCaptureIsolation);
        EXPECT_EQ(capture.end(), cudaErrorStreamCaptureInvalidated);
    });
}

// ---- needs of launches ----------------------------------------------------------------------------------------------

namespace {

void kernel() {}
void unknown() {}

// File with a kernel's registers and its most threads.
void give(size_t registers, size_t most_threads)
{
    Dl_info info{};
    ASSERT_NE(dladdr(reinterpret_cast<const void *>(kernel), &info), 0);
    const std::string name = testing::TempDir() + "yoke_registers_" + std::to_string(getpid());
    FILE *file = fopen(name.c_str(), "w");
    fprintf(file, "1 2 3\n%zu %zu %zu\n",
            reinterpret_cast<size_t>(kernel) - reinterpret_cast<size_t>(info.dli_fbase), registers,
            most_threads);
    fclose(file);
    setenv("FAKE_CUDA_REGISTERS", name.c_str(), 1);
}

cudaError_t ask(size_t threads, void (*of)() = kernel)
{
    return fake_resources(reinterpret_cast<const void *>(of), threads);
}

}  // namespace

TEST(Registers, OfABlockThatAMultiprocessorCannotHoldRefuseItsLaunch)
{
    in_fresh_process([] { EXPECT_EQ(ask(1024), cudaSuccess) << "nothing is known of kernels"; });
    in_fresh_process([] {
        give(65, 1024);  // 72 are given, since a warp gets registers in pieces of 256
        EXPECT_EQ(ask(1024), cudaErrorLaunchOutOfResources);
        EXPECT_EQ(ask(897), cudaErrorLaunchOutOfResources) << "29 warps";
        EXPECT_EQ(ask(896), cudaSuccess);
        EXPECT_EQ(ask(1024, unknown), cudaErrorInvalidDeviceFunction);
        EXPECT_EQ(fake_resources(nullptr, 1024), cudaSuccess) << "of a library";
        remove(getenv("FAKE_CUDA_REGISTERS"));
    });
    in_fresh_process([] {
        give(64, 512);
        EXPECT_EQ(ask(512), cudaSuccess);
        EXPECT_EQ(ask(513), cudaErrorInvalidValue) << "the launch bound";
        remove(getenv("FAKE_CUDA_REGISTERS"));
    });
}

}  // namespace yoke::test
