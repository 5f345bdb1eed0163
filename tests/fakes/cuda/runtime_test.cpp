// The fake runtime by itself: that it punishes what CUDA punishes, so that a module which passes over it is right.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/core/fresh_process.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::test {

namespace {

// A device with its context current.
struct Device {
    void *driver = dlopen(FOLDER "/driver/libcuda.so.1", RTLD_NOW);
    CUcontext context = nullptr;

    Device()
    {
        call<decltype(&::cuInit)>("cuInit")(0);
        call<decltype(&::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
        enter();
    }
    // In another thread, too.
    void enter() { call<decltype(&::cuCtxPushCurrent)>("cuCtxPushCurrent_v2")(context); }
    template <class Call>
    Call call(const char *symbol)
    {
        return reinterpret_cast<Call>(dlsym(driver, symbol));
    }
    cudaStream_t stream()
    {
        cudaStream_t made = nullptr;
        EXPECT_EQ(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0), cudaSuccess);
        return made;
    }
    cudaEvent_t event()
    {
        cudaEvent_t made = nullptr;
        EXPECT_EQ(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), cudaSuccess);
        return made;
    }
    char *block(size_t bytes = 64)
    {
        void *made = nullptr;
        EXPECT_EQ(cudaMalloc(&made, bytes), cudaSuccess);
        return static_cast<char *>(made);
    }
    template <class Body>
    void in_another_thread(const Body &body)
    {
        std::thread([&] {
            enter();
            body();
        }).join();
    }
};

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

}  // namespace yoke::test
