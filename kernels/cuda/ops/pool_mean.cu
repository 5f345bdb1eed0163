// Means over windows of height and width, and their gradients. A gradient gathers from the windows around its pixel.
#include "kernels/cuda/ops/pool.cuh"

YOKE_CUDA_BEGIN

using kernels::Adding;
using kernels::PoolSum;

// Window of a pixel of the result: its taps, and the number by which its sum is divided.
template <class C>
struct Window {
    Taps down, across;
    int64_t image;
    C divisor;

    __device__ Window(const PoolJob &p, const PoolIndex &at)
        : down(taps_of(p.y, at.y)),
          across(taps_of(p.x, at.x)),
          image(p.of_in.image(at)),
          divisor(p.divisor ? (C)p.divisor : (C)counted(p, p.y, down) * (C)counted(p, p.x, across))
    {
    }
};

// Computes the means of one window.
template <class T, Adding kHow, int V, class C = compute_type<T>>
__device__ inline void window_means(const PoolJob &p, const Window<C> &window, C (&means)[V])
{
    using Sum = PoolSum<C, kHow>;
    constexpr auto kScale = (Sum)kernels::kPoolScale<kHow>;
    const Taps &down = window.down, &across = window.across;
    Sum sums[V] = {};
    YOKE_NO_UNROLL
    for (int64_t y = down.first + down.begin; y < down.first + down.end; y++)
        for (int64_t x = across.first + across.begin; x < across.first + across.end; x++) {
            C values[V];
            take_values<T>(p.dtype, p.in, window.image + y * p.of_in.y + x * p.of_in.x, values);
            YOKE_UNROLL
            for (int v = 0; v < V; v++) sums[v] += (Sum)values[v] * kScale;
        }
    YOKE_UNROLL
    for (int v = 0; v < V; v++) means[v] = (C)(sums[v] / window.divisor / kScale);
}

template <class T, int V>
__global__ void mean_windows(PoolJob p)
{
    using C = compute_type<T>;
    constexpr Adding kAgain = kernels::kAddingAgain<C>;
    const bool widens = kAgain == Adding::kWide && p.many;
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Window<C> window(p, at);
        C means[V] = {}, again[V] = {};
        bool lost = widens;
        if (!widens) window_means<T, Adding::kPlain>(p, window, means);
        YOKE_UNROLL
        for (int v = 0; v < V; v++) lost |= !widens && !(means[v] - means[v] == (C)0);
        if (lost) window_means<T, kAgain>(p, window, again);
        YOKE_UNROLL
        for (int v = 0; v < V; v++)
            if (widens || !(means[v] - means[v] == (C)0)) means[v] = again[v];
        put_values<T>(p.dtype, p.out, p.of_out.pixel(at), means);
    }
}

// Adds up a pixel's gradients: in double if there are many. Both ways share the loops, which have most of the code.
template <class T, int V, class C = compute_type<T>>
__device__ inline void gradient_sums(const PoolJob &p, const PoolIndex &at, C (&gradients)[V])
{
    const Windows down = windows_of(p.y, at.y), across = windows_of(p.x, at.x);
    const int64_t image = p.of_out.image(at);
    const bool is_wide = sizeof(C) < sizeof(double) && p.many;
    C sums[V] = {};
    double wide[V] = {};
    YOKE_NO_UNROLL
    for (int64_t y = down.begin; y < down.end; y++) {
        YOKE_NO_UNROLL
        for (int64_t x = across.begin; x < across.end; x++) {
            C values[V];
            take_values<T>(p.dtype, p.out, image + y * p.of_out.y + x * p.of_out.x, values);
            const C divisor = divisor_of<C>(p, y, x);
            YOKE_UNROLL
            for (int v = 0; v < V; v++) {
                const C share = values[v] / divisor;
                if (is_wide)
                    wide[v] += (double)share;
                else
                    sums[v] += share;
            }
        }
    }
    YOKE_UNROLL
    for (int v = 0; v < V; v++) gradients[v] = is_wide ? (C)wide[v] : sums[v];
}

template <class T, int V>
__global__ void mean_gradients(PoolJob p)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        compute_type<T> gradients[V];
        gradient_sums<T>(p, at, gradients);
        put_values<T>(p.dtype, p.in, p.of_in.pixel(at), gradients);
    }
}

YOKE_KERNEL(_avg_pool)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const kernels::Pool p = kernels::mean_pool_of(launch, o[0], o[1]);
    return for_float(launch, "x", p.dtype, [&]<class T>() {
        return start_pool<T>(launch, p, p.y.out, p.x.out, mean_windows<T, kPackLength<T>>,
                             mean_windows<General<T>, 1>);
    });
}

YOKE_KERNEL(_avg_pool_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const kernels::Pool p = kernels::mean_pool_of(launch, o[1], o[0]);
    return for_float(launch, "grad", p.dtype, [&]<class T>() {
        return start_pool<T>(launch, p, p.y.in, p.x.in, mean_gradients<T, kPackLength<T>>,
                             mean_gradients<General<T>, 1>);
    });
}

YOKE_CUDA_END
