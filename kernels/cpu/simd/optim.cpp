// Step of an optimizer over all tensors of a group in one pass. If found_inf is not 0, no value changes.
#include "kernels/common/optim.h"

#include "kernels/cpu/simd/multi_tensor.h"

YOKE_SIMD_BEGIN

using Group = kernels::OptimGroup;

static bool is_skipped(const Group &group)
{
    return group.found_inf && *group.found_inf != 0;
}

// ---- stochastic gradient descent ---------------------------------------------------------------------------------

template <class C>
static void sgd_run(const kernels::Sgd<C> sgd, C *p, const C *g, C *buffer, int64_t n)
{
    if (buffer) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) p[i] = sgd(p[i], g[i], buffer[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) p[i] = sgd(p[i], g[i]);
    }
}

YOKE_KERNEL(_sgd)
{
    const yoke_arg *params = launch->params;
    double momentum = float_param(params[1]);
    Group group(launch, momentum != 0);
    if (is_skipped(group)) return YOKE_OK;
    for_tensors(group.params, group.count, [&](int64_t i, int64_t from, int64_t to) {
        const yoke_operand &weight = *group.weight(i);
        const yoke_operand &buffer = momentum != 0 ? group.state[i] : weight;
        bool has_copy = group.copy(i) != nullptr;
        with_compute_type(weight.dtype, [&]<class C>() {
            const kernels::Sgd<C> sgd = kernels::sgd_of<C>(params);
            unsigned kept = momentum != 0 ? 5u : 1u;
            for_runs<C, 4>({&weight, &group.grads[i], &buffer, &group.params[i]}, kept | 2u,
                           kept | (has_copy ? 8u : 0u), from, to, [&](C **x, int64_t n) {
                               sgd_run<C>(sgd, x[0], x[1], momentum != 0 ? x[2] : nullptr, n);
                               x[3] = x[0];
                           });
        });
    });
    return YOKE_OK;
}

// ---- Adam --------------------------------------------------------------------------------------------------------

template <class C>
static void adam_run(const kernels::Adam<C> adam, C *const *x, int64_t n)
{
    C *p = x[0], *first = x[2], *second = x[3];
    const C *g = x[1];
#pragma omp simd
    for (int64_t i = 0; i < n; i++) p[i] = adam(p[i], g[i], first[i], second[i]);
}

static void adam_tensor(const Group &group, const kernels::AdamOptions &options, int64_t i,
                        int64_t from, int64_t to)
{
    const yoke_operand &weight = *group.weight(i), *state = group.state + i;
    double step = (double)*data_of<float>(state[2 * group.count]) + 1;
    unsigned copied = group.copy(i) != nullptr ? 16u : 0u;
    with_compute_type(weight.dtype, [&]<class C>() {
        kernels::Adam<C> adam = kernels::adam_step<C>(options, step);
        for_runs<C, 5>({&weight, &group.grads[i], &state[0], &state[group.count], &group.params[i]},
                       15u, 13u | copied, from, to, [&](C **x, int64_t n) {
                           adam_run<C>(adam, x, n);
                           x[4] = x[0];
                       });
    });
}

static yoke_status adam(const yoke_launch *launch, bool decoupled)
{
    const kernels::AdamOptions options = kernels::adam_options(launch->params, decoupled);
    Group group(launch, 3);
    if (is_skipped(group)) return YOKE_OK;
    for_tensors(group.params, group.count, [&](int64_t i, int64_t from, int64_t to) {
        adam_tensor(group, options, i, from, to);
    });
    // Only now: every thread has read them.
    for (int64_t i = 0; i < group.count; i++)
        *data_of<float>(group.state[2 * group.count + i]) += 1;
    return YOKE_OK;
}

YOKE_KERNEL(_adam)
{
    return adam(launch, false);
}

YOKE_KERNEL(_adamw)
{
    return adam(launch, true);
}

YOKE_SIMD_END
