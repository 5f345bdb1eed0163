// A kernel that writes beyond its operands is found: each block of the fake device is one of the host's, and so is each
// tensor where caching is off, as it is under sanitizers.
#include "module.h"
#include "tests/backend/launch.h"

namespace yoke::test {

TEST(Overrun, AKernelThatWritesBehindABlockIsFoundBySanitizers)
{
#if defined(__SANITIZE_ADDRESS__)
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const Module module;
            void *device = Module::open(), *x = nullptr, *y = nullptr;
            Module::table()->alloc(device, 64 * sizeof(float), &x);
            Module::table()->alloc(device, 64 * sizeof(float) - 1, &y);
            Record(YOKE_OP_ADD, device)
                .in(static_cast<float *>(x), {64})
                .in(static_cast<float *>(x), {64})
                .out(static_cast<float *>(y), {64})
                .run(*Module::table());
            Module::table()->device_synchronize(device);
        },
        "heap-buffer-overflow");
#else
    GTEST_SKIP() << "for AddressSanitizer to find";
#endif
}

}  // namespace yoke::test
