#include "core/ops/engines.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/error.h"
#include "core/device/availability.h"
#include "core/device/device.h"

#include <cinttypes>
#include <climits>

namespace yoke {

constinit Switch detail::deterministic_algorithms("YOKE_DETERMINISTIC_ALGORITHMS");
constinit Number detail::cudnn_settings[kCudnnSettings] = {
    Number("YOKE_CUDNN_ENABLED"),         Number("YOKE_CUDNN_BENCHMARK"),
    Number("YOKE_CUDNN_BENCHMARK_LIMIT"), Number("YOKE_CUDNN_DETERMINISTIC"),
    Number("YOKE_CUDNN_WORKSPACE_LIMIT"),
};

void use_deterministic_algorithms(bool wanted) noexcept
{
    detail::deterministic_algorithms.set(wanted);
}

void set_cudnn_setting(CudnnSetting setting, int64_t value)
{
    if (setting == CudnnSetting::kBenchmarkLimit && (value < 0 || value > INT_MAX))
        fail(YOKE_E_VALUE,
             "backends.cudnn: benchmark_limit is %" PRId64
             "; it must be a number of plans from 1 to %d, or 0 for all",
             value, INT_MAX);
    if (setting == CudnnSetting::kWorkspaceLimit && value < 0)
        fail(YOKE_E_VALUE,
             "backends.cudnn: workspace_limit is %" PRId64
             "; it must be a number of bytes, 0 or more",
             value);
    const bool is_number =
        setting == CudnnSetting::kBenchmarkLimit || setting == CudnnSetting::kWorkspaceLimit;
    detail::cudnn_settings[static_cast<int>(setting)].set(is_number ? value : value != 0);
}

FoundEngine find_cudnn()
{
    constexpr const char *kName = "cudnn";
    if (!cudnn_setting(CudnnSetting::kEnabled))
        return {
            0,
            "cuDNN is switched off, by YOKE_CUDNN_ENABLED=0 or by the program; set yoke.backends.cudnn.enabled to true"};
    const char *kind = kind_calling(kName);
    const Availability known = Availability::of(kind);
    if (!known) return {0, known.text()};
    const auto engine = backend_of(kind).table->engine;
    if (!engine)
        return {0, format("the backend %s does not call cuDNN; install the backend of this release",
                          kind)};
    char why[8192] = "";
    FoundEngine found;
    check_backend(engine(kName, &found.version, why, sizeof why), "cannot query cuDNN");
    found.why = why;
    return found;
}

}  // namespace yoke
