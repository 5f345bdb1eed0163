// A product of matrices by the emulated module over the fakes, and the values compared in tests.
#pragma once

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/lent.h"
#include "tests/backend/launch.h"
#include "tests/core/fresh_process.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace yoke::test {

inline const yoke_backend *g_table;
inline int g_scratch;  // blocks in use

inline yoke_status take_scratch(void *device, uint64_t bytes, void *, uint32_t, void **out) noexcept
{
    const yoke_status status = g_table->alloc(device, bytes, out);
    g_scratch += status == YOKE_OK;
    return status;
}

inline void give_scratch(void *device, void *pointer, void *) noexcept
{
    g_table->device_synchronize(device);  // pending work may use the memory
    g_table->free(device, pointer, 0);
    --g_scratch;
}

// A device of the emulated module, with x (2 x 3) and y (3 x 2) on it; memory is the host's own.
struct Products {
    void *device = nullptr;
    // Aligned, since algorithms are chosen for an alignment.
    alignas(256) std::array<float, 6> x = {1, 2, 3, 4, 5, 6}, y = {1, 0, 0, 1, -1, -1};
    alignas(256) std::array<float, 4> out = {0, 0, 0, 0};
    std::array<float, 4> want = {-2, -1, -2, -1};

    explicit Products(const char *folders = FOLDER "/driver")
    {
        setenv("YOKE_CUDA_LIB_PATH", folders, 1);
        const Backend opened = detail::open_module("cuda", EMULATED);
        EXPECT_NE(opened.table, nullptr) << opened.reason;
        g_table = opened.table;
        lent.alloc_scratch = take_scratch;
        lent.free_scratch = give_scratch;
        EXPECT_EQ(g_table->device_open(0, &device), YOKE_OK);
    }
    // Starts a record and waits for the device.
    yoke_status finish(Record &record)
    {
        const yoke_status status = record.run(*g_table);
        return status ? status : g_table->device_synchronize(device);
    }
    yoke_status multiply(uint32_t flags = 0)
    {
        return finish(Record(YOKE_OP_MATMUL, device)
                          .in(x.data(), {2, 3})
                          .in(y.data(), {3, 2})
                          .out(out.data(), {2, 2})
                          .allow(flags));
    }
};

inline int live_handles()
{
    void *library = dlopen(CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
    if (!library) return 0;
    return reinterpret_cast<int (*)()>(dlsym(library, "fake_cublaslt_live_handles"))();
}

inline int products_in(cublasComputeType_t compute)
{
    void *library = dlopen(CUBLASLT, RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<int (*)(int)>(dlsym(library, "fake_cublaslt_products"))(compute);
}

inline void expect_failure(yoke_status wanted, yoke_status got,
                           const std::vector<std::string> &texts)
{
    EXPECT_EQ(got, wanted);
    const std::string told = got ? take_backend_error(got, "call") : "it succeeded";
    for (const std::string &text : texts)
        EXPECT_NE(told.find(text), std::string::npos) << "'" << text << "' is not in: " << told;
}

}  // namespace yoke::test
