// Engines that may run a graph: first from cuDNN's heuristics, then from its list of engines that always work.
//
// Contract
//  * An engine's notes must allow the engine. NONDETERMINISTIC is allowed only if asked for; TENSOR_CORE and
//    DOWN_CONVERT_INPUTS in f32 only with TF32; REDUCED_PRECISION_REDUCTION never.
//  * A plan has all data for execution: its graph may be destroyed.
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

// Returns whether an engine with these notes may run. Notes without a rule are allowed.
bool notes_allow(const EngineRules &rules, const cudnnBackendNumericalNote_t *notes, int64_t count);

// Makes a plan of a configuration. Returns false if the rules forbid the engine, the workspace is above the limit, or
// a call fails; `steps` keeps the failure. made.workspace is set for a workspace above the limit too.
bool make_plan(CudnnSteps &steps, const Graph &graph, const EngineRules &rules, Descriptor &&config,
               CudnnPlan &made);

// Finds the best plans, at most `wanted`, in cuDNN's order, and returns their number. A result of 0 is not a failure,
// and a failed plan is not either: `why`, if not null, keeps the first such failure. `refused`, if not null, gets the
// smallest workspace above the limit, or 0.
int find_plans(const Graph &graph, const EngineRules &rules, int wanted, CudnnPlan *plans,
               CudnnFailure *why = nullptr, uint64_t *refused = nullptr);

}  // namespace yoke::cuda
