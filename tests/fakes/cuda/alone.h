// The fake runtime and driver alone, without a module.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/core/fresh_process.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::test {

// Device with a current context.
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

}  // namespace yoke::test
