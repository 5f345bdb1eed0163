// The arguments of what works on lists of tensors at once: optimizers, clipping, scaling of the loss. Host code.
#pragma once

#include "kernels/common/operand.h"
#include "kernels/common/optim.h"

YOKE_KERNELS_BEGIN

inline int64_t total_numel(const yoke_operand *tensors, int64_t count)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += tensors[i].numel;
    return total;
}

// Returns how many operands, from the first on, are written. In such launches, a list of read tensors follows the
// list of written tensors.
inline int64_t count_written(const yoke_launch *launch)
{
    int64_t n = 0;
    while (n < launch->operand_count && (launch->operands[n].flags & YOKE_OPERAND_WRITE)) n++;
    return n;
}

// Tensors of one step: params, grads, `states` lists of state, optional masters, optional found_inf.
struct OptimGroup {
    int64_t count;
    const yoke_operand *params, *grads, *state, *masters;
    const float *found_inf;  // null if none was given

    OptimGroup(const yoke_launch *launch, int64_t states)
        : count(count_written(launch)),
          params(launch->operands),
          grads(params + count),
          state(grads + count),
          masters(state + states * count)
    {
        const yoke_operand *found = launch->operands + launch->operand_count - 1;
        if (masters == found) masters = nullptr;
        found_inf = is_present(*found) ? data_of<float>(*found) : nullptr;
    }
    // Returns the step's target: the parameter's master if there are masters, else the parameter.
    const yoke_operand *weight(int64_t i) const { return masters ? masters + i : params + i; }
    // Returns the parameter if its master is another tensor; else null.
    const yoke_operand *copy(int64_t i) const
    {
        return weight(i)->data != params[i].data ? params + i : nullptr;
    }
};

inline AdamOptions adam_options(const yoke_arg *p, bool decoupled)
{
    return {float_param(p[0]), float_param(p[1]), float_param(p[2]),
            float_param(p[3]), float_param(p[4]), decoupled};
}

template <class C>
inline Sgd<C> sgd_of(const yoke_arg *p)
{
    return {(C)float_param(p[0]), (C)float_param(p[1]), (C)float_param(p[2]), p[3].v.i != 0};
}

YOKE_KERNELS_END
