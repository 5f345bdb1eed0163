// A program in which a launch had findings must fail at its end, even if its tests ignored the launch's error.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cuda/ops/kernel.cuh"
#include "tests/fakes/cuda/fake.h"

static cudaError_t g_last = cudaSuccess;

// Stands for a stream, and does the work at once.
cudaError_t fake_enqueue(const char *, cudaStream_t, int (*work)(void *), void (*drop)(void *),
                         void *context, const void *, size_t)
{
    g_last = static_cast<cudaError_t>(work(context));
    drop(context);
    return g_last;
}

// Stands for a runtime without memory, without figures of kernels, and without a record.
void fake_blocks(void (*)(void *, void *, size_t), void *) {}
cudaError_t fake_resources(const void *, size_t)
{
    return cudaSuccess;
}
int fake_note(const char *)
{
    return 0;
}

extern "C" cudaError_t cudaGetLastError()
{
    const cudaError_t last = g_last;
    g_last = cudaSuccess;
    return last;
}

namespace yoke::emu {

TEST(Verdict, AProgramThatPassesOverAFindingFailsAtItsEnd)
{
    const yoke_launch record{};
    const auto racy = [] {
        YOKE_SHARED(int, cell, 1);
        cell[0] = (int)threadIdx.x;
    };
    EXPECT_EXIT(
        {
            EXPECT_EQ(launch("racy", nullptr, &record, 1, 64, 0, racy), cudaErrorLaunchFailure);
            exit(0);
        },
        testing::ExitedWithCode(1), "no barrier between.*\n.*have findings: 1, of racy first");
    EXPECT_EXIT(
        {
            EXPECT_EQ(launch("right", nullptr, &record, 1, 64, 0, [] { __syncthreads(); }),
                      cudaSuccess);
            exit(0);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace yoke::emu
