// Runs of attention through the fake cuDNN, beside Yoke's own kernels in single precision.
#pragma once

#include "attention.h"
#include "cudnn_runs.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

// Beside the own kernels in single precision.
inline void expect_near(const std::vector<std::vector<float>> &got,
                        const std::vector<std::vector<float>> &wanted, float tolerance = 3e-3f)
{
    static constexpr const char *kNames[] = {"result", "query's", "key's", "value's",
                                             "log-sum-exp"};
    for (size_t k = 0; k < 5; ++k) {
        ASSERT_EQ(got[k].size(), wanted[k].size());
        float most = 1;
        for (const float x : wanted[k])
            if (std::isfinite(x)) most = std::max(most, std::abs(x));
        for (size_t i = 0; i < got[k].size(); ++i) {
            if (got[k][i] == wanted[k][i]) continue;  // infinities too
            ASSERT_NEAR(got[k][i], wanted[k][i], tolerance * most) << kNames[k] << "[" << i << "]";
        }
    }
}

template <class T>
std::vector<std::vector<float>> run_both(void *device, const AttentionCase &asked)
{
    AttentionRun<T> run(device, asked);
    EXPECT_EQ(run.forward(), YOKE_OK) << failure().message;
    EXPECT_EQ(run.backward(), YOKE_OK) << failure().message;
    return run.read();
}

// Returns how many graphs a case runs.
inline int graphs_of(void *device, const AttentionCase &asked,
                     const std::vector<std::vector<float>> *wanted = nullptr)
{
    const int before = std::max(cudnn_runs(false), 0);
    const auto got = run_both<uint16_t>(device, asked);
    // Scores, and what the gradients are rounded from, grow with the width.
    if (wanted)
        expect_near(got, *wanted, 3e-3f * std::max(1.0f, static_cast<float>(asked.width) / 64));
    return std::max(cudnn_runs(false), 0) - before;
}

// Returns the number of graphs, and compares the values with Yoke's own kernels.
inline int right_graphs_of(void *device, const AttentionCase &asked)
{
    const auto wanted = run_both<float>(device, asked);
    return graphs_of(device, asked, &wanted);
}

// With cuDNN, in a process of its own.
template <class F>
void with_cudnn(const F &body)
{
    in_fresh_process([&] {
        const Module module;
        void *device = Module::open();
        body(module, device);
        module->device_close(device);
        EXPECT_EQ(Module::held(), "");
        // Without its exit handlers the module writes no counts of its lines, and coverage.py misses them.
        if (!testing::Test::HasFailure()) exit(0);
    });
}

}  // namespace yoke::test
