#include "kernels/cuda/host/cublaslt_tune.h"

#include <cstring>

namespace yoke::cuda {

Tuning tuning_of(const yoke_launch *launch)
{
    const char *wanted = g_host->config("YOKE_CUBLASLT_AUTOTUNE");
    if (launch->flags & YOKE_LAUNCH_DETERMINISTIC) return Tuning::kOff;
    if (!wanted || strcmp(wanted, "1") != 0) return Tuning::kOff;
    return tuning_on(launch, kTunedProduct);
}

static Tuned tuned_by(const CublasLt &lt, const PlanKey &key)
{
    return {"YOKE_CUBLASLT_AUTOTUNE_FILE",
            "cublaslt",
            lt.call->cublasLtGetVersion(),
            "",
            &key,
            sizeof key};
}

bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo)
{
    return recall_winner(launch, tuned_by(lt, key), algo, sizeof *algo);
}

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan)
{
    keep_winner(launch, tuned_by(lt, plan.key), &plan.algo, sizeof plan.algo);
}

}  // namespace yoke::cuda
