// Engine and its knob choices: the part of a plan that outlasts its process.
#pragma once

#include "kernels/cuda/host/cudnn/plans.h"

namespace yoke::cuda {

struct CudnnWinner {
    static constexpr int kMostKnobs = 64;

    int64_t engine, count;
    struct {
        int32_t type, value;
    } knobs[kMostKnobs];
};

// Reads the engine and the knobs of a plan. Returns false if cuDNN does not report them, or if there are more than
// kMostKnobs.
bool read_winner(const CudnnCalls &call, const CudnnPlan &plan, CudnnWinner &winner);

// Makes the winner's plan for a graph. Returns false if cuDNN no longer has the engine, or the rules forbid the plan.
bool remake_plan(const Graph &graph, const EngineRules &rules, const CudnnWinner &winner,
                 CudnnPlan &plan);

}  // namespace yoke::cuda
