// remake.h: results of a call that follow from another result by a cheap op, with the same bits.
//
// If a checkpoint scope would hold both results, it holds a single result and recomputes the other.
#pragma once

#include "core/device/device.h"
#include "core/ops/op_def.h"

namespace yoke {

struct Remake {
    size_t from, to;  // operands of the call
    int32_t op;       // takes `from` alone and gives `to`
    yoke_arg params[1];
    int param_count;
};

// Describes the recompute for _linear_act, beside the op in matmul.cpp. Returns false if there is no such recompute.
bool remake_of_linear_act(const yoke_launch &launch, const Device &device, Remake &remake);

// Describes how a result of the launch follows cheaply from another result. Returns false if no result does.
inline bool find_remake(const yoke_launch &launch, const Device &device, Remake &remake)
{
    return launch.op == YOKE_OP__LINEAR_ACT && remake_of_linear_act(launch, device, remake);
}

}  // namespace yoke
