// opened.h: the module over the fake runtime, for tests of the module's calls.
#pragma once

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "tests/fakes/cuda/fake.h"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace yoke::test {

// The module over the fake runtime, and the fake driver.
struct Module {
    const yoke_backend *table = nullptr;
    void *driver = nullptr;

    Module()
    {
        setenv("YOKE_CUDA_LIB_PATH", FOLDER "/driver", 1);
        const Backend opened = detail::open_module("cuda", FOLDER "/fake");
        EXPECT_NE(opened.table, nullptr) << opened.reason;
        table = opened.table;
    }
    void *open(int32_t index)
    {
        void *device = nullptr;
        EXPECT_EQ(table->device_open(index, &device), YOKE_OK);
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        return device;
    }
    template <class Call>
    Call call(const char *symbol)
    {
        return reinterpret_cast<Call>(dlsym(driver, symbol));
    }
    int contexts() { return call<decltype(&::fake_held)>("fake_held")(FAKE_CONTEXTS); }
    CUcontext current()
    {
        CUcontext context = nullptr;
        EXPECT_EQ(call<decltype(&::cuCtxGetCurrent)>("cuCtxGetCurrent")(&context), CUDA_SUCCESS);
        return context;
    }
};

// Returns the host program's message from a failing call.
inline std::string message(yoke_status status)
{
    return status == YOKE_OK ? "it succeeded" : take_backend_error(status, "call");
}

inline void expect_says(yoke_status expected, yoke_status status,
                        const std::vector<const char *> &texts)
{
    EXPECT_EQ(status, expected);
    const std::string told = message(status);
    for (const char *text : texts)
        EXPECT_NE(told.find(text), std::string::npos) << "'" << text << "' is not in: " << told;
}

}  // namespace yoke::test
