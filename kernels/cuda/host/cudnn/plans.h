// Which engines may run a graph: cuDNN's heuristics are asked first, then its list of those that always work.
//
// Contract
//  * An engine's notes must allow it. NONDETERMINISTIC only where that is asked for; TENSOR_CORE and
//    DOWN_CONVERT_INPUTS in f32 only where TF32 is; REDUCED_PRECISION_REDUCTION never.
//  * A plan is what execution needs: the graph it was made of may be gone.
#pragma once

#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

struct EngineRules {
    bool is_f32, tf32, deterministic;
    uint64_t workspace_limit;  // bytes
};

struct CudnnPlan {
    Descriptor config, plan;
    uint64_t workspace = 0;
};

// Whether an engine of these notes may run; notes that no rule names are fine.
bool notes_allow(const EngineRules &rules, const cudnnBackendNumericalNote_t *notes, int64_t count);

// A plan of a configuration, if its engine may run and its workspace, which is told in any case, is within the limit.
bool make_plan(CudnnSteps &steps, const Graph &graph, const EngineRules &rules, Descriptor &&config,
               CudnnPlan &made);

// The best plans, at most `wanted`, in cuDNN's order; 0 is no failure. What a plan's making failed with is not either:
// `why`, where it is not null, keeps the first. `refused` is told the least workspace that is beyond the limit, 0 if
// none is.
int find_plans(const Graph &graph, const EngineRules &rules, int wanted, CudnnPlan *plans,
               CudnnFailure *why = nullptr, uint64_t *refused = nullptr);

}  // namespace yoke::cuda
