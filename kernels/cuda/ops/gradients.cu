// Work on all gradients (or weights) at once: loss scaling, norm and clipping, averages. The deciding values lie on
// the device and are read there.
#include <cmath>

#include "kernels/common/optim.h"
#include "kernels/common/vector_norm.h"
#include "kernels/cuda/ops/multi_tensor.cuh"

YOKE_CUDA_BEGIN

constexpr int kGradBytes = 64;  // bytes of a thread at once, in the computing type

static auto item_of(const yoke_operand *tensors)
{
    return [=](int64_t i) -> Item<1> { return {{tensors + i}}; };
}

// ---- loss scaling ------------------------------------------------------------------------------------------------

template <class C>
struct Unscale : OpOn<C, 1, 1, 1, kGradBytes> {
    using Settled = float;  // the factor
    using Sum = uint32_t;   // not 0 once one was not finite
    const float *scale;
    float *found;

    Unscale(const float *by, float *into) : scale(by), found(into) {}
    __device__ Settled settle(char *const *) const { return kernels::unscale_factor(*scale); }
    __device__ void operator()(Settled factor, C (&x)[1], Sum &sum) const
    {
        x[0] *= (C)factor;
        sum |= (uint32_t)kernels::not_finite(x[0]);
    }
    __device__ void finish(Sum sum) const
    {
        if (sum) *found = 1;  // any thread may, all write the same
    }
};

__global__ void clear_flag(float *flag)
{
    if (threadIdx.x == 0) *flag = 0;
}

YOKE_KERNEL(_unscale)
{
    const int64_t count = launch->operand_count - 2;
    const yoke_operand *grads = launch->operands;
    float *found = data_of<float>(grads[count]);
    const auto *scale = data_of<const float>(grads[count + 1]);
    if (yoke_status status = start(launch, clear_flag, {1, block_size(kWarp)}, found))
        return status;
    return over_list<Unscale>(launch, count, chunk_of(total_numel(grads, count)), item_of(grads),
                              [&]<class C>() { return Unscale<C>(scale, found); });
}

constexpr int kFlags = 400;

struct Flags {
    int32_t count;
    const float *at[kFlags];
};

// Looks for overflows in a part of the flags. The last part updates the scale, earlier parts store the result in
// `found`. `found` has the result of earlier parts, if any.
__global__ void update_scale(Flags flags, int32_t *found, bool is_first, bool is_last,
                             kernels::ScaleRule rule, float *scale, int32_t *tracker)
{
    if (threadIdx.x) return;
    bool overflowed = !is_first && *found;
    for (int i = 0; i < flags.count; i++) overflowed |= *flags.at[i] != 0;
    if (is_last)
        rule(*scale, *tracker, overflowed);
    else
        *found = overflowed;
}

YOKE_KERNEL(_update_scale)
{
    const yoke_operand *operands = launch->operands, *found_infs = operands + 2;
    const yoke_arg *params = launch->params;
    const int64_t count = launch->operand_count - 2;
    const kernels::ScaleRule rule{float_param(params[0]), float_param(params[1]), params[2].v.i,
                                  (float)float_param(params[3])};
    Scratch found(launch);
    if (count > kFlags)
        if (yoke_status status = found.reserve(sizeof(int32_t))) return status;
    int64_t first = 0;
    do {
        Flags flags;
        flags.count = (int32_t)min(count - first, kFlags);
        for (int32_t i = 0; i < flags.count; i++)
            flags.at[i] = data_of<const float>(found_infs[first + i]);
        if (yoke_status status =
                start(launch, update_scale, {1, block_size(kWarp)}, flags, found.as<int32_t>(),
                      first == 0, first + flags.count >= count, rule, data_of<float>(operands[0]),
                      data_of<int32_t>(operands[1])))
            return status;
        first += kFlags;
    } while (first < count);
    return YOKE_OK;
}

// ---- norm --------------------------------------------------------------------------------------------------------

using kernels::ScaledSum;

// Joins sums outside double's range, or of unusual orders. Not inlined, so the code exists once.
__device__ __attribute__((noinline)) ScaledSum join_apart(double p, ScaledSum a, ScaledSum b)
{
    return kernels::TotalNorm{p}.combine(a, b);
}

struct Join {
    double p;
    __device__ ScaledSum operator()(const ScaledSum &a, const ScaledSum &b) const
    {
        if (a.scale == b.scale && p - p == 0) return {a.scale, a.sum + b.sum};
        return join_apart(p, a, b);
    }
};

// Adds a magnitude, for unusual orders and for doubles. Not inlined either.
__device__ __attribute__((noinline)) ScaledSum sum_with(ScaledSum sum, double size, Join join)
{
    const double p = join.p, raised = p == 1   ? size
                                      : p == 2 ? size * size
                                               : kernels::raised(size, p);
    return join(sum, p == 1 ? ScaledSum{1, size} : kernels::TotalNorm{p}.term(size, raised));
}

// Joins the sums of all threads of a block. The first thread gets the result.
__device__ inline ScaledSum join_block(const ScaledSum &sum, const Join &join)
{
    return reduce_block(sum, ScaledSum{1, 0}, join);
}

// Sum of |x|^p, or the largest |x|, in double: the sum neither overflows nor loses small terms. Each block stores its
// sum after the sums of earlier blocks.
template <class C>
struct PowerNorm : OpOn<C, 1, 1, 0, kGradBytes> {
    using Sum = ScaledSum;  // at first of scale 0
    ScaledSum *partial;
    Join join;

    PowerNorm(ScaledSum *to, double p) : partial(to), join{p}, all_(to) {}
    void starts_at(int64_t block) { partial = all_ + block; }
    __device__ void operator()(Nothing, C (&x)[1], ScaledSum &sum) const
    {
        const double p = join.p, size = ::fabs((double)x[0]);
        if (kernels::TotalNorm{p}.is_max()) {
            sum = {1, kernels::Amax<double>().combine(sum.sum, size)};
            return;
        }
        if (p == 2 && sizeof(C) == 4) {
            sum = {1, sum.sum + size * size};
            return;
        }
        sum = sum_with(sum, size, join);
    }
    __device__ void finish(const ScaledSum &sum) const
    {
        const ScaledSum all = join_block(sum, join);
        if (threadIdx.x == 0) partial[blockIdx.x] = all;
    }

private:
    ScaledSum *all_;
};

// Joins the partial results in order, by a single block, and writes the norm.
__global__ void join_norm(const ScaledSum *partial, int64_t count, Join join, double *out)
{
    ScaledSum sum{1, 0};
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum = join(sum, partial[i]);
    sum = join_block(sum, join);
    if (threadIdx.x == 0) *out = kernels::TotalNorm{join.p}.project(sum);
}

YOKE_KERNEL(_total_norm)
{
    const int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands, &out = tensors[count];
    const Join join{float_param(launch->params[0])};
    const int64_t chunk = chunk_of(total_numel(tensors, count));
    int64_t blocks = 0;
    for (int64_t i = 0; i < count; i++) blocks += divide_up(tensors[i].numel, chunk);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)blocks * sizeof(ScaledSum))) return status;
    auto *partial = scratch.as<ScaledSum>();
    const auto item = item_of(tensors);
    const yoke_status status = over_list<PowerNorm>(
        launch, count, chunk, item, [&]<class C>() { return PowerNorm<C>(partial, join.p); });
    if (status) return status;
    return start(launch, join_norm, {1, block_size(512)}, (const ScaledSum *)partial, blocks, join,
                 data_of<double>(out));
}

// ---- clipping ----------------------------------------------------------------------------------------------------

template <class C>
struct Clip : OpOn<C, 1, 1, 1, kGradBytes> {
    using Settled = kernels::ClipFactors<C>;
    const double *norm, max_norm;

    Clip(const double *of, double most) : norm(of), max_norm(most) {}
    __device__ bool is_skipped() const { return kernels::clip_factor(*norm, max_norm) == 1; }
    __device__ Settled settle(char *const *) const
    {
        return kernels::clip_factors<C>(*norm, max_norm);
    }
    __device__ void operator()(const Settled &by, C (&x)[1], Nothing) const
    {
        x[0] = x[0] * by.first * by.second;
    }
};

YOKE_KERNEL(_clip_all)
{
    const int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands;
    const auto *norm = data_of<const double>(tensors[count]);
    const double max_norm = float_param(launch->params[0]);
    return over_list<Clip>(launch, count, chunk_of(total_numel(tensors, count)), item_of(tensors),
                           [&]<class C>() { return Clip<C>(norm, max_norm); });
}

// ---- averages ----------------------------------------------------------------------------------------------------

// Step of an average towards a value. Operands: average, value.
template <class C>
struct Lerp : OpOn<C, 2, 3, 1, 32> {
    C weight;

    explicit Lerp(double by) : weight((C)by) {}
    __device__ void operator()(Nothing, C (&x)[2], Nothing) const
    {
        x[0] += weight * (x[1] - x[0]);
    }
};

YOKE_KERNEL(_lerp_all)
{
    const int64_t count = launch->operand_count / 2;
    const yoke_operand *averages = launch->operands, *tensors = averages + count;
    const double weight = float_param(launch->params[0]);
    return over_list<Lerp>(
        launch, count, chunk_of(total_numel(averages, count)),
        [&](int64_t i) -> Item<2> {
            return {{averages + i, tensors + i}};
        },
        [&]<class C>() { return Lerp<C>(weight); }, Kind<2>{{YOKE_F32, YOKE_BF16}},
        Kind<2>{{YOKE_F32, YOKE_F16}});
}

YOKE_CUDA_END
