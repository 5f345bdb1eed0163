// Step of an optimizer over all tensors of a group. The device decides whether to change values: if found_inf is not
// 0, no value changes. The counts of steps are also kept and advanced on the device.
#include "kernels/common/optim.h"
#include "kernels/cuda/ops/multi_tensor.cuh"

YOKE_CUDA_BEGIN

struct Group : kernels::OptimGroup {
    using OptimGroup::OptimGroup;
    int64_t chunk() const { return chunk_of(total_numel(params, count)); }
};

__device__ inline bool is_found(const float *found_inf)
{
    return found_inf && *found_inf != 0;
}

constexpr int kStepBytes = 32;  // bytes of each operand for a thread at once, in the computing type

// ---- stochastic gradient descent ---------------------------------------------------------------------------------

// Step of SGD without momentum. Operands: weight, gradient, copy.
template <class C>
struct PlainSgd : OpOn<C, 3, 3, 5, kStepBytes> {
    kernels::Sgd<C> sgd;
    const float *found_inf;

    PlainSgd(const kernels::Sgd<C> &of, const float *found) : sgd(of), found_inf(found) {}
    __device__ bool is_skipped() const { return is_found(found_inf); }
    __device__ void operator()(Nothing, C (&x)[3], Nothing) const { x[0] = x[2] = sgd(x[0], x[1]); }
};

// Step of SGD with momentum. Operands: weight, gradient, momentum, copy.
template <class C>
struct MomentumSgd : OpOn<C, 4, 7, 13, kStepBytes> {
    kernels::Sgd<C> sgd;
    const float *found_inf;

    MomentumSgd(const kernels::Sgd<C> &of, const float *found) : sgd(of), found_inf(found) {}
    __device__ bool is_skipped() const { return is_found(found_inf); }
    __device__ void operator()(Nothing, C (&x)[4], Nothing) const
    {
        x[0] = x[3] = sgd(x[0], x[1], x[2]);
    }
};

using kernels::sgd_of;

// Returns the kind of a float32 master with a parameter and gradient in halves.
static Kind<3> mastered_plain(yoke_dtype half)
{
    return {{YOKE_F32, half, half}};
}
static Kind<4> mastered_momentum(yoke_dtype half)
{
    return {{YOKE_F32, half, YOKE_F32, half}};
}
static Kind<5> mastered_adam(yoke_dtype half)
{
    return {{YOKE_F32, half, YOKE_F32, YOKE_F32, half}};
}

YOKE_KERNEL(_sgd)
{
    const bool has_momentum = float_param(launch->params[1]) != 0;
    const Group group(launch, has_momentum);
    if (!has_momentum)
        return over_list<PlainSgd>(
            launch, group.count, group.chunk(),
            [&](int64_t i) -> Item<3> {
                return {{group.weight(i), group.grads + i, group.copy(i)}};
            },
            [&]<class C>() { return PlainSgd<C>(sgd_of<C>(launch->params), group.found_inf); },
            mastered_plain(YOKE_BF16), mastered_plain(YOKE_F16));
    return over_list<MomentumSgd>(
        launch, group.count, group.chunk(),
        [&](int64_t i) -> Item<4> {
            return {{group.weight(i), group.grads + i, group.state + i, group.copy(i)}};
        },
        [&]<class C>() { return MomentumSgd<C>(sgd_of<C>(launch->params), group.found_inf); },
        mastered_momentum(YOKE_BF16), mastered_momentum(YOKE_F16));
}

// ---- Adam --------------------------------------------------------------------------------------------------------

// Step of Adam. Operands: weight, gradient, both averages, copy; further the number of steps so far.
template <class C>
struct Adam : OpOn<C, 5, 15, 29, kStepBytes> {
    using Settled = kernels::Adam<C>;
    static constexpr int kPointers = 6;
    kernels::AdamOptions options;
    const float *found_inf;

    Adam(const kernels::AdamOptions &o, const float *found) : options(o), found_inf(found) {}
    __device__ bool is_skipped() const { return is_found(found_inf); }
    __device__ Settled settle(char *const *data) const
    {
        return kernels::adam_step<C>(options, (double)*(const float *)data[5] + 1);
    }
    __device__ void operator()(const Settled &adam, C (&x)[5], Nothing) const
    {
        x[0] = x[4] = adam(x[0], x[1], x[2], x[3]);
    }
};

constexpr int kCounters = 500;

struct Counters {
    int32_t count;
    float *at[kCounters];
};

__global__ void advance(Counters counters, const float *found_inf)
{
    if (is_found(found_inf)) return;
    for (int i = (int)threadIdx.x; i < counters.count; i += (int)blockDim.x) *counters.at[i] += 1;
}

// Advances the step counts. This is a separate launch after the step, because every block must have read the counts
// before.
static yoke_status advance_steps(const yoke_launch *launch, const Group &group)
{
    const yoke_operand *steps = group.state + 2 * group.count;
    for (int64_t first = 0; first < group.count; first += kCounters) {
        Counters counters{};
        counters.count = (int32_t)min(group.count - first, kCounters);
        for (int32_t i = 0; i < counters.count; i++)
            counters.at[i] = data_of<float>(steps[first + i]);
        if (yoke_status status =
                start(launch, advance, {1, block_size(kThreads)}, counters, group.found_inf))
            return status;
    }
    return YOKE_OK;
}

static yoke_status adam(const yoke_launch *launch, bool decoupled)
{
    const kernels::AdamOptions options = kernels::adam_options(launch->params, decoupled);
    const Group group(launch, 3);
    const yoke_operand *first = group.state, *second = first + group.count,
                       *steps = second + group.count;
    const yoke_status status = over_list<Adam>(
        launch, group.count, group.chunk(),
        [&](int64_t i) -> Item<5> {
            return {{group.weight(i), group.grads + i, first + i, second + i, group.copy(i)},
                    steps[i].data};
        },
        [&]<class C>() { return Adam<C>(options, group.found_inf); }, mastered_adam(YOKE_BF16),
        mastered_adam(YOKE_F16));
    return status ? status : advance_steps(launch, group);
}

YOKE_KERNEL(_adam)
{
    return adam(launch, false);
}

YOKE_KERNEL(_adamw)
{
    return adam(launch, true);
}

YOKE_CUDA_END
