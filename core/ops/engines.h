// engines.h: process-wide settings for launches: deterministic algorithms, and cuDNN. Also whether cuDNN is present.
//
// Every launch record carries YOKE_LAUNCH_DETERMINISTIC while deterministic algorithms are asked for.
// The launch records of products, convolutions and attention carry the settings (YOKE_LAUNCH_CUDNN_*,
// benchmark_limit, workspace_limit), so a graph keeps the settings of its capture. Other ops do not use the settings.
#pragma once

#include "core/backend/backend.h"
#include "core/base/config.h"

#include <string>

namespace yoke {

// The order is that of YOKE_CUDNN_* in yoke/engines.h.
enum class CudnnSetting { kEnabled, kBenchmark, kBenchmarkLimit, kDeterministic, kWorkspaceLimit };
inline constexpr int kCudnnSettings = 5;

namespace detail {
extern Switch deterministic_algorithms;
extern Number cudnn_settings[kCudnnSettings];
}  // namespace detail

// Returns whether ops must give the same bits in each run: at first the value of YOKE_DETERMINISTIC_ALGORITHMS, else
// false. Raises YOKE_E_VALUE for an unreadable value.
inline bool uses_deterministic_algorithms()
{
    return detail::deterministic_algorithms.is_on();
}

// Sets the switch for launches of every thread from now on.
void use_deterministic_algorithms(bool wanted) noexcept;

// Returns YOKE_LAUNCH_DETERMINISTIC if the switch is on, else 0.
inline uint32_t determinism_flag()
{
    return uses_deterministic_algorithms() ? YOKE_LAUNCH_DETERMINISTIC : 0;
}

// Returns a setting: at first the value of the setting's variable (YOKE_CUDNN_ENABLED, …), else 1, 0, 10, 0 and 256
// MiB. Raises YOKE_E_VALUE for an unreadable value.
inline int64_t cudnn_setting(CudnnSetting setting)
{
    return detail::cudnn_settings[static_cast<int>(setting)].get();
}

// Changes a setting for launches of every thread from now on. Raises YOKE_E_VALUE for a limit below 0, or a benchmark
// limit beyond 32 bits.
void set_cudnn_setting(CudnnSetting setting, int64_t value);

// Settings carried by a launch that cuDNN may compute.
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
    if (!cudnn_setting(CudnnSetting::kDeterministic) && !uses_deterministic_algorithms())
        flags |= YOKE_LAUNCH_CUDNN_NONDETERMINISTIC;
    return flags;
}

inline CudnnTerms cudnn_terms()
{
    return {cudnn_flags(), static_cast<uint32_t>(cudnn_setting(CudnnSetting::kBenchmarkLimit)),
            static_cast<uint64_t>(cudnn_setting(CudnnSetting::kWorkspaceLimit))};
}

// State of cuDNN in the CUDA backend. find_cudnn looks for the library now, unless cuDNN is not enabled or there is
// no device.
struct FoundEngine {
    int64_t version = 0;  // 91900 is 9.19.0; 0 where it cannot serve
    std::string why;      // then a sentence with the remedy
};
FoundEngine find_cudnn();

}  // namespace yoke
