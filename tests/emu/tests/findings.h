// Kernels written for a test, run over several orders of their threads, and expected findings.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/cuda/ops/kernel.cuh"

namespace yoke::emu {

constexpr int kSeeds = 8;
constexpr unsigned kHalf = 0xffffu;

inline void set_seed(int seed)
{
    setenv("YOKE_EMU_SEED", std::to_string(seed).c_str(), 1);
}

template <class Kernel>
std::string findings(dim3 grid, dim3 block, size_t shared, const Kernel &kernel)
{
    testing::internal::CaptureStderr();
    const bool passed = run("test", grid, block, shared, kernel);
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(passed, told.empty()) << told;
    return told;
}

template <class Kernel>
void expect_finding(const char *text, int threads, const Kernel &kernel, size_t shared = 0)
{
    for (int seed = 0; seed < kSeeds; seed++) {
        set_seed(seed);
        const std::string told = findings(2, (unsigned)threads, shared, kernel);
        EXPECT_NE(told.find(text), std::string::npos) << "seed " << seed << ": '" << told << "'";
    }
}

template <class Kernel>
void expect_nothing(int threads, const Kernel &kernel, size_t shared = 0)
{
    for (int seed = 0; seed < kSeeds; seed++) {
        set_seed(seed);
        EXPECT_EQ(findings(3, (unsigned)threads, shared, kernel), "");
    }
}

inline int me()
{
    return (int)threadIdx.x;
}

}  // namespace yoke::emu
