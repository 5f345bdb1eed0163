// A kernel that writes beyond its operands must be found. Each block of the fake device is a block of the host's
// heap. Without caching, as under sanitizers, so is each tensor.
#include "module.h"
#include "tests/backend/launch.h"

namespace yoke::test {

#if defined(__SANITIZE_ADDRESS__)
// Runs a kernel whose last element ends a byte behind the block.
static void overrun()
{
    const Module module;
    void *device = Module::open(), *x = nullptr, *y = nullptr;
    module->alloc(device, 64 * sizeof(float), &x);
    module->alloc(device, 64 * sizeof(float) - 1, &y);
    const float *in = static_cast<float *>(x);
    Record(YOKE_OP_ADD, device)
        .in(in, {64})
        .in(in, {64})
        .out(static_cast<float *>(y), {64})
        .run(*Module::table());
    module->device_synchronize(device);
}

TEST(Overrun, AKernelThatWritesBehindABlockIsFound)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(overrun(), "heap-buffer-overflow");
}
#else
TEST(Overrun, AKernelThatWritesBehindABlockIsFound)
{
    GTEST_SKIP() << "for AddressSanitizer to find";
}
#endif

}  // namespace yoke::test
