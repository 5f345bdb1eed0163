// engines.h: what cuDNN may do for launches, for the whole process, and whether it is there.
//
// The launch records of products, convolutions and attention carry the settings (YOKE_LAUNCH_CUDNN_*, benchmark_limit,
// workspace_limit), so that what a graph was captured with stays with the graph. Those of other ops have no use for
// them.
#pragma once

#include "core/backend/backend.h"
#include "core/base/config.h"

#include <string>

namespace yoke {

// The order is that of YOKE_CUDNN_* in yoke/engines.h.
enum class CudnnSetting { kEnabled, kBenchmark, kBenchmarkLimit, kDeterministic, kWorkspaceLimit };
inline constexpr int kCudnnSettings = 5;

namespace detail {
extern Number cudnn_settings[kCudnnSettings];
}  // namespace detail

// At first what the setting's variable says (YOKE_CUDNN_ENABLED, …), else 1, 0, 10, 1 and 256 MiB. Raises YOKE_E_VALUE
// for a value that cannot be read.
inline int64_t cudnn_setting(CudnnSetting setting)
{
    return detail::cudnn_settings[static_cast<int>(setting)].get();
}

// For launches of every thread from now on. Raises YOKE_E_VALUE for a limit below 0, or a benchmark limit beyond 32
// bits.
void set_cudnn_setting(CudnnSetting setting, int64_t value);

// What a launch that cuDNN may compute carries of them.
struct CudnnTerms {
    uint32_t flags = 0;  // YOKE_LAUNCH_CUDNN_*
    uint32_t benchmark_limit = 0;
    uint64_t workspace_limit = 0;
};

inline uint32_t cudnn_flags()
{
    uint32_t flags = 0;
    if (!cudnn_setting(CudnnSetting::kEnabled)) flags |= YOKE_LAUNCH_CUDNN_OFF;
    if (cudnn_setting(CudnnSetting::kBenchmark)) flags |= YOKE_LAUNCH_CUDNN_BENCHMARK;
    if (!cudnn_setting(CudnnSetting::kDeterministic)) flags |= YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;
    return flags;
}

inline CudnnTerms cudnn_terms()
{
    return {cudnn_flags(), static_cast<uint32_t>(cudnn_setting(CudnnSetting::kBenchmarkLimit)),
            static_cast<uint64_t>(cudnn_setting(CudnnSetting::kWorkspaceLimit))};
}

// cuDNN as the CUDA backend finds it: it is looked for now, unless it is not enabled or there is no device.
struct FoundEngine {
    int64_t version = 0;  // 91900 is 9.19.0; 0 where it cannot serve
    std::string why;      // then one sentence with its remedy
};
FoundEngine find_cudnn();

}  // namespace yoke
