// Pooling over height and width, and its gradients: a thread for each element, neighbours along memory. A gradient
// gathers from the windows around its pixel.
#include "kernels/common/pool.h"
#include "kernels/cuda/ops/halves.cuh"

YOKE_CUDA_BEGIN

using kernels::Pool;
using kernels::PoolIndex;
using kernels::Taps;
using kernels::Windows;

// ---- max ------------------------------------------------------------------------------------------------------------

__device__ inline void write_place(const Pool &p, int64_t i, int64_t place)
{
    if (p.has_wide_places)
        ((int32_t *)p.places)[i] = (int32_t)place;
    else
        ((uint8_t *)p.places)[i] = (uint8_t)place;
}

__device__ inline int64_t read_place(const Pool &p, int64_t i)
{
    return p.has_wide_places ? ((const int32_t *)p.places)[i] : ((const uint8_t *)p.places)[i];
}

template <class T>
__global__ void max_windows(Pool p, int64_t count)
{
    using C = compute_type<T>;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        PoolIndex at = pool_index(p, i, p.y.out, p.x.out);
        const Taps down = sliding_taps(p.y, at.y), across = sliding_taps(p.x, at.x);
        T best = store<T>(-(C)INFINITY);
        int64_t place = -1;
        for (int64_t k = down.begin; k < down.end; k++)
            for (int64_t j = across.begin; j < across.end; j++) {
                at.y = down.first + k * p.y.dilation, at.x = across.first + j * p.x.dilation;
                const T v = ((const T *)p.in)[pool_at(p, at, p.y.in, p.x.in)];
                if (place >= 0 && !kernels::is_better(widen<T>(v), widen<T>(best))) continue;
                best = v;
                place = k * p.x.kernel + j;
            }
        ((T *)p.out)[i] = best;
        if (p.places) write_place(p, i, max(place, 0));
    }
}

template <class T>
__global__ void max_gradients(Pool p, int64_t count)
{
    using C = compute_type<T>;
    const bool many = adds_many(p);  // then each row of windows has a sum of its own
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex here = pool_index(p, i, p.y.in, p.x.in);
        const Windows down = sliding_windows(p.y, here.y), across = sliding_windows(p.x, here.x);
        PoolIndex at = here;
        C sum = C(0), total = C(0);
        for (at.y = down.begin; at.y < down.end; at.y++) {
            const int64_t k = tap_at(p.y, at.y, here.y);
            for (at.x = across.begin; k >= 0 && at.x < across.end; at.x++) {
                const int64_t j = tap_at(p.x, at.x, here.x),
                              from = pool_at(p, at, p.y.out, p.x.out);
                if (j >= 0 && read_place(p, from) == k * p.x.kernel + j)
                    sum += widen<T>(((const T *)p.out)[from]);
            }
            if (many) total += sum, sum = C(0);
        }
        ((T *)p.in)[i] = store<T>(many ? total : sum);
    }
}

// ---- means ----------------------------------------------------------------------------------------------------------

using kernels::Adding;
using kernels::PoolSum;

// Returns the mean of one window.
template <class T, Adding kHow, class C = compute_type<T>>
__device__ inline C window_mean(const Pool &p, const PoolIndex &here)
{
    using Sum = PoolSum<C, kHow>;
    constexpr auto kScale = (Sum)kernels::kPoolScale<kHow>;
    const Taps down = taps_of(p.y, here.y), across = taps_of(p.x, here.x);
    PoolIndex at = here;
    Sum sum = 0;
    for (at.y = down.first + down.begin; at.y < down.first + down.end; at.y++)
        for (at.x = across.first + across.begin; at.x < across.first + across.end; at.x++)
            sum += (Sum)widen<T>(((const T *)p.in)[pool_at(p, at, p.y.in, p.x.in)]) * kScale;
    return (C)(sum / divisor_of<C>(p, here.y, here.x) / kScale);
}

template <class T>
__global__ void mean_windows(Pool p, int64_t count)
{
    using C = compute_type<T>;
    constexpr Adding kAgain = kernels::kAddingAgain<C>;
    const bool widens = kAgain == Adding::kWide && adds_many(p);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex here = pool_index(p, i, p.y.out, p.x.out);
        C mean = widens ? (C)0 : window_mean<T, Adding::kPlain>(p, here);
        if (widens || !(mean - mean == (C)0)) mean = window_mean<T, kAgain>(p, here);
        ((T *)p.out)[i] = store<T>(mean);
    }
}

template <class T, Adding kHow, class C = compute_type<T>>
__device__ inline C gradient_sum(const Pool &p, const PoolIndex &here)
{
    const Windows down = windows_of(p.y, here.y), across = windows_of(p.x, here.x);
    PoolIndex at = here;
    PoolSum<C, kHow> sum = 0;
    for (at.y = down.begin; at.y < down.end; at.y++)
        for (at.x = across.begin; at.x < across.end; at.x++)
            sum += widen<T>(((const T *)p.out)[pool_at(p, at, p.y.out, p.x.out)]) /
                   divisor_of<C>(p, at.y, at.x);
    return (C)sum;
}

template <class T>
__global__ void mean_gradients(Pool p, int64_t count)
{
    const bool many = adds_many(p);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex here = pool_index(p, i, p.y.in, p.x.in);
        ((T *)p.in)[i] = store<T>(many ? gradient_sum<T, Adding::kWide>(p, here)
                                       : gradient_sum<T, Adding::kPlain>(p, here));
    }
}

// ---- entries --------------------------------------------------------------------------------------------------------

static yoke_status start_each(const yoke_launch *launch, void (*kernel)(Pool, int64_t),
                              const Pool &p, int64_t count)
{
    const int threads = block_size(kThreads);
    return start(launch, kernel, {blocks_for(launch, count, threads), threads}, p, count);
}

YOKE_KERNEL(_max_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[0], o[1], o[2]);
    return for_float(launch, "x", p.dtype,
                     [&]<class T>() { return start_each(launch, max_windows<T>, p, o[1].numel); });
}

YOKE_KERNEL(_max_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const Pool p = kernels::max_pool_of(launch, o[2], o[0], o[1]);
    return for_float(launch, "grad", p.dtype, [&]<class T>() {
        return start_each(launch, max_gradients<T>, p, o[2].numel);
    });
}

YOKE_KERNEL(_avg_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[0], o[1]);
    return for_float(launch, "x", p.dtype,
                     [&]<class T>() { return start_each(launch, mean_windows<T>, p, o[1].numel); });
}

YOKE_KERNEL(_avg_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Pool p = kernels::mean_pool_of(launch, o[1], o[0]);
    return for_float(launch, "grad", p.dtype, [&]<class T>() {
        return start_each(launch, mean_gradients<T>, p, o[1].numel);
    });
}

YOKE_CUDA_END
