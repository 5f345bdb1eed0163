// Interpolation of planes over height and width, and its gradient, which gathers. A thread has one element of the
// written tensor, or a pack of channels of one pixel.
#include "kernels/common/resize.h"
#include "kernels/cuda/ops/pool.cuh"

YOKE_CUDA_BEGIN

using kernels::Resize;
using kernels::ResizeAxis;
using kernels::Sample;

// A call as a kernel takes it; pixels are numbered as in poolings. The samples of both axes of the result lie in device
// memory, and in a gradient the first reader of each position of x: the first position of the result whose near
// position is this one or a later one.
template <class C>
struct ResizeJob {
    PoolJob pixels;
    const Sample<C> *down, *across;
    const int64_t *down_readers, *across_readers;
    bool is_linear;
};

template <class C>
__global__ void make_samples(ResizeAxis y, ResizeAxis x, Sample<C> *samples)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < y.out + x.out;
         i += (int64_t)gridDim.x * blockDim.x)
        samples[i] = i < y.out ? kernels::sample_of<C>(y, i) : kernels::sample_of<C>(x, i - y.out);
}

__device__ inline int64_t first_reader(const ResizeAxis &a, int64_t i)
{
    if (i <= 0) return 0;
    if (i >= a.in) return a.out;
    // A position near the wanted one; then exact steps.
    const double guess = a.step > 0 ? (double)i / a.step : 0;
    int64_t o = guess < (double)a.out ? (int64_t)guess : a.out;
    while (o > 0 && kernels::sample_of<double>(a, o - 1).near >= i) o--;
    while (o < a.out && kernels::sample_of<double>(a, o).near < i) o++;
    return o;
}

// Finds the first readers of all positions along both axes, and the ends behind the last ones.
__global__ void find_readers(ResizeAxis y, ResizeAxis x, int64_t *readers)
{
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < y.in + x.in + 2;
         i += (int64_t)gridDim.x * blockDim.x)
        readers[i] = i <= y.in ? first_reader(y, i) : first_reader(x, i - y.in - 1);
}

template <class T, int V, class C = compute_type<T>>
__global__ void interpolate_pixels(ResizeJob<C> job)
{
    const PoolJob &p = job.pixels;
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Sample<C> down = job.down[at.y], across = job.across[at.x];
        const int64_t image = p.of_in.image(at);
        C sums[V] = {};
        YOKE_UNROLL
        for (int k = 0; k < 2; k++) {
            const int64_t row = image + (k ? down.far : down.near) * p.of_in.y;
            C near[V], far[V];
            take_values<T>(p.dtype, p.in, row + across.near * p.of_in.x, near);
            take_values<T>(p.dtype, p.in, row + across.far * p.of_in.x, far);
            const C share = k ? down.share : (C)1 - down.share;
            YOKE_UNROLL
            for (int v = 0; v < V; v++)
                sums[v] += (near[v] * ((C)1 - across.share) + far[v] * across.share) * share;
        }
        put_values<T>(p.dtype, p.out, p.of_out.pixel(at), sums);
    }
}

// Copies pixels of words, whose size alone matters.
template <class T, int V, class C>
__global__ void nearest_pixels(ResizeJob<C> job)
{
    const PoolJob &p = job.pixels;
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const int64_t from =
            p.of_in.image(at) + job.down[at.y].near * p.of_in.y + job.across[at.x].near * p.of_in.x;
        store_pack<V>((T *)p.out + p.of_out.pixel(at), load_pack<V>((const T *)p.in + from));
    }
}

template <class T, int V, class C = compute_type<T>>
__global__ void gather_gradients(ResizeJob<C> job)
{
    const PoolJob &p = job.pixels;
    const auto readers_of = [&job](const int64_t *readers, int64_t i) {
        return Windows{readers[job.is_linear && i > 0 ? i - 1 : i], readers[i + 1]};
    };
    YOKE_NO_UNROLL
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const PoolIndex at = p.at(i);
        const Windows down = readers_of(job.down_readers, at.y),
                      across = readers_of(job.across_readers, at.x);
        const int64_t image = p.of_out.image(at);
        C sums[V] = {};
        YOKE_NO_UNROLL
        for (int64_t x = across.begin; x < across.end; x++) {
            C column[V] = {};
            YOKE_UNROLL_BY(2)
            for (int64_t y = down.begin; y < down.end; y++) {
                C values[V];
                take_values<T>(p.dtype, p.out, image + y * p.of_out.y + x * p.of_out.x, values);
                const C weight = kernels::weight_of(job.down[y], (int32_t)at.y);
                YOKE_UNROLL
                for (int v = 0; v < V; v++) column[v] += values[v] * weight;
            }
            const C weight = kernels::weight_of(job.across[x], (int32_t)at.x);
            YOKE_UNROLL
            for (int v = 0; v < V; v++) sums[v] += column[v] * weight;
        }
        put_values<T>(p.dtype, p.in, p.of_in.pixel(at), sums);
    }
}

// Returns the planes of a call as a pool: x is `in`, whichever of both is written.
static kernels::Pool planes_of(const Resize &r, const void *x, void *out)
{
    kernels::Pool p = {};
    p.dtype = r.dtype, p.is_nhwc = r.is_nhwc;
    p.n = r.n, p.c = r.c;
    p.y = {r.y.in, r.y.out, 1, 1, 0, 1};
    p.x = {r.x.in, r.x.out, 1, 1, 0, 1};
    p.in = const_cast<void *>(x), p.out = out;
    return p;
}

// Kernels for packs of channels, and for elements.
template <class C>
struct ResizeKernels {
    void (*packs)(ResizeJob<C>), (*elements)(ResizeJob<C>);
};

// Makes the tables of a call, then starts a kernel for the pixels of the written tensor.
template <class T, class C = compute_type<T>>
static yoke_status start_resize(const yoke_launch *launch, const Resize &r, const kernels::Pool &p,
                                bool of_gradient, const ResizeKernels<C> &kernels)
{
    constexpr int V = kPackLength<T>;
    const int64_t samples = r.y.out + r.x.out, readers = of_gradient ? r.y.in + r.x.in + 2 : 0;
    const int threads = block_size(kThreads);
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve(
            (uint64_t)(readers * (int64_t)sizeof(int64_t) + samples * (int64_t)sizeof(Sample<C>))))
        return status;
    int64_t *first = scratch.as<int64_t>();
    auto *table = (Sample<C> *)(first + readers);
    if (const yoke_status status =
            start(launch, make_samples<C>, {blocks_for(launch, samples, threads), threads}, r.y,
                  r.x, table))
        return status;
    if (readers)
        if (const yoke_status status =
                start(launch, find_readers, {blocks_for(launch, readers, threads), threads}, r.y,
                      r.x, first))
            return status;
    const bool packed = takes_packs(p, V, sizeof(T));
    const int64_t height = of_gradient ? r.y.in : r.y.out, width = of_gradient ? r.x.in : r.x.out;
    const ResizeJob<C> job{PoolJob(p, height, width, packed ? V : 1),
                           table,
                           table + r.y.out,
                           first,
                           first + r.y.in + 1,
                           r.y.is_linear};
    return start(launch, packed ? kernels.packs : kernels.elements,
                 {blocks_for(launch, job.pixels.count, threads), threads}, job);
}

template <class T>
using Word = std::conditional_t<is_half<T>, uint16_t, T>;

YOKE_KERNEL(_interpolate)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    const Resize r = kernels::resize_of(launch, o[0], o[1]);
    const kernels::Pool p = planes_of(r, o[0].data, o[1].data);
    return for_float(launch, "x", r.dtype, [&]<class T>() {
        constexpr int V = kPackLength<T>;
        using Kernels = ResizeKernels<compute_type<T>>;
        return start_resize<T>(
            launch, r, p, false,
            r.y.is_linear ? Kernels{interpolate_pixels<T, V>, interpolate_pixels<General<T>, 1>}
                          : Kernels{nearest_pixels<Word<T>, V>, nearest_pixels<Word<T>, 1>});
    });
}

YOKE_KERNEL(_interpolate_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[1].numel == 0) return YOKE_OK;
    Resize r = kernels::resize_of(launch, o[1], o[0]);
    r.is_nhwc = launch->params[5].v.i != 0;
    const kernels::Pool p = planes_of(r, o[1].data, o[0].data);
    return for_float(launch, "grad", r.dtype, [&]<class T>() {
        using Kernels = ResizeKernels<compute_type<T>>;
        return start_resize<T>(
            launch, r, p, true,
            Kernels{gather_gradients<T, kPackLength<T>>, gather_gradients<General<T>, 1>});
    });
}

YOKE_CUDA_END
