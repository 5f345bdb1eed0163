// What is done to all gradients (or weights) at once: loss scaling, norm and clipping, averages. What decides lies on
// the device and is read there.
#include <cmath>

#include "kernels/common/optim.h"
#include "kernels/cuda/ops/multi_tensor.cuh"

YOKE_CUDA_BEGIN

constexpr int kGradBytes = 64;  // of a gradient for a thread at once, as it is computed

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
        sum |= (uint32_t)kernels::not_finite(x[0]);
        x[0] *= (C)factor;
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

// One part of the flags; what earlier ones held is told by `found`, if there were any.
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
    const kernels::ScaleRule rule{float_param(params[0]), float_param(params[1]), params[2].v.i};
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

struct Join {
    bool is_max;
    __device__ double operator()(double a, double b) const
    {
        if (!is_max) return a + b;
        return a > b || a != a ? a : b;  // NaN wins
    }
};

// Sums in double, which neither overflow nor lose small terms; each block leaves its own behind those before it.
template <class C>
struct NormOn : OpOn<C, 1, 1, 0, kGradBytes> {
    using Sum = double;
    double *partial;
    Join join;

    NormOn(double *to, bool is_max) : partial(to), join{is_max}, all_(to) {}
    void starts_at(int64_t block) { partial = all_ + block; }
    __device__ void finish(double sum) const
    {
        sum = reduce_block(sum, 0.0, join);
        if (threadIdx.x == 0) partial[blockIdx.x] = sum;
    }

private:
    double *all_;
};

// One copy of what only unusual orders need.
__device__ __attribute__((noinline)) double power(double size, double p)
{
    return ::pow(size, p);
}

// The sum of |x|^p, or the largest |x|.
template <class C>
struct PowerNorm : NormOn<C> {
    double p;

    PowerNorm(double *to, bool is_max, double power) : NormOn<C>(to, is_max), p(power) {}
    __device__ void operator()(Nothing, C (&x)[1], double &sum) const
    {
        const double size = ::fabs((double)x[0]);
        if (p == 2)
            sum += size * size;
        else
            sum = this->join(this->join.is_max || p == 1 ? size : power(size, p), sum);
    }
};

// By one block, in the order of the partial results.
__global__ void join_norm(const double *partial, int64_t count, double p, Join join,
                          yoke_dtype dtype, void *out)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum = join(partial[i], sum);
    sum = reduce_block(sum, 0.0, join);
    if (threadIdx.x) return;
    const double norm = join.is_max || p == 1 ? sum : p == 2 ? ::sqrt(sum) : ::pow(sum, 1 / p);
    if (dtype == YOKE_F64)
        *(double *)out = norm;
    else
        *(float *)out = (float)norm;
}

YOKE_KERNEL(_total_norm)
{
    const int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands, &out = tensors[count];
    const double p = float_param(launch->params[0]);
    const Join join{p == (double)__builtin_huge_val()};
    const int64_t chunk = chunk_of(total_numel(tensors, count));
    int64_t blocks = 0;
    for (int64_t i = 0; i < count; i++) blocks += divide_up(tensors[i].numel, chunk);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)blocks * sizeof(double))) return status;
    auto *partial = scratch.as<double>();
    const auto item = item_of(tensors);
    const yoke_status status = over_list<PowerNorm>(launch, count, chunk, item, [&]<class C>() {
        return PowerNorm<C>(partial, join.is_max, p);
    });
    if (status) return status;
    return start(launch, join_norm, {1, block_size(512)}, partial, blocks, p, join, out.dtype,
                 out.data);
}

// ---- clipping ----------------------------------------------------------------------------------------------------

template <class C>
struct Clip : OpOn<C, 1, 1, 1, kGradBytes> {
    using Settled = C;  // the factor
    const void *norm;
    bool is_double;
    double max_norm;

    Clip(const yoke_operand &of, double most)
        : norm(of.data), is_double(of.dtype == YOKE_F64), max_norm(most)
    {
    }
    __device__ double factor() const
    {
        const double size = is_double ? *(const double *)norm : (double)*(const float *)norm;
        return kernels::clip_factor(size, max_norm);
    }
    __device__ bool is_skipped() const { return factor() == 1; }
    __device__ Settled settle(char *const *) const { return (C)factor(); }
    __device__ void operator()(Settled by, C (&x)[1], Nothing) const { x[0] *= by; }
};

YOKE_KERNEL(_clip_all)
{
    const int64_t count = launch->operand_count - 1;
    const yoke_operand *tensors = launch->operands, &norm = tensors[count];
    const double max_norm = float_param(launch->params[0]);
    return over_list<Clip>(launch, count, chunk_of(total_numel(tensors, count)), item_of(tensors),
                           [&]<class C>() { return Clip<C>(norm, max_norm); });
}

// ---- averages ----------------------------------------------------------------------------------------------------

// Operands: average, value.
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
