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

// False where cuDNN does not tell, or has more knobs than there is room for.
bool read_winner(const CudnnCalls &call, const CudnnPlan &plan, CudnnWinner &winner);

// Makes the winner's plan for a graph, if cuDNN still has the engine and the rules allow it.
bool remake_plan(const Graph &graph, const EngineRules &rules, const CudnnWinner &winner,
                 CudnnPlan &plan);

}  // namespace yoke::cuda
