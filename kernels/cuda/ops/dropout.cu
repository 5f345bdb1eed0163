// Dropout: the mask is a draw at (seed, offset), made again by the gradient and never stored.
#include "kernels/cuda/ops/draw.cuh"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

template <class T>
struct Dropout {
    kernels::Keep keep;
    compute_type<T> scale;
    Draw draw;

    explicit Dropout(const yoke_launch *launch) : draw(launch, launch->params + 1)
    {
        const double p = float_param(launch->params[0]);
        keep = kernels::Keep::dropping(p);
        scale = kernels::dropout_scale<compute_type<T>>(p);
    }
    __device__ T operator()(bool is_kept, T x) const
    {
        return is_kept ? store<T>(load<T>(x) * scale) : store<T>(0);
    }
};

// Elements of a thread at once: 16 bytes, or a block of the generator if this has more elements.
template <class T>
inline constexpr int kDropped = std::max(kPackLength<T>, kernels::Keep::kDraws);

// Computes out[k] = f(mask[k], x[k]) for kDropped elements of two aligned runs.
template <class T>
__device__ inline void drop_packs(const Dropout<T> &f, const bool *mask, const T *x, T *out)
{
    constexpr int W = kPackLength<T>, kPacks = kDropped<T> / W;
    Pack<T, W> packs[kPacks];
    YOKE_UNROLL
    for (int i = 0; i < kPacks; i++) packs[i] = load_pack<W>(x + i * W);
    YOKE_UNROLL
    for (int i = 0; i < kPacks; i++) {
        YOKE_UNROLL
        for (int k = 0; k < W; k++) packs[i].at[k] = f(mask[i * W + k], packs[i].at[k]);
    }
    YOKE_UNROLL
    for (int i = 0; i < kPacks; i++) store_pack<W>(out + i * W, packs[i]);
}

// Draws the mask and applies dropout. The walk counts elements in row-major order: operand 0 is out, operand 1 is x,
// which may be out.
template <class T>
__global__ void __launch_bounds__(kThreads, kResident<T>)
    drop(Walk<2> walk, bool is_packed, Dropout<T> f)
{
    constexpr int N = kDropped<T>, kDraws = kernels::Keep::kDraws;
    const uint64_t first = f.draw.first();
    const int64_t units = divide_up(walk.numel, N), step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; unit < units;
         unit += step) {
        bool mask[N];
        YOKE_UNROLL
        for (int i = 0; i < N / kDraws; i++)
            f.keep(kernels::random_block(f.draw.seed, first + (uint64_t)(unit * (N / kDraws) + i)),
                   mask + i * kDraws);
        const int64_t at = unit * N;
        if (is_packed && at + N <= walk.numel) {
            drop_packs<T>(f, mask, (const T *)walk.data[1] + at, (T *)walk.data[0] + at);
            continue;
        }
        YOKE_UNROLL
        for (int k = 0; k < N; k++) {
            if (at + k >= walk.numel) continue;
            const Place<2> place = walk.at(at + k);
            *(T *)place.data[0] = f(mask[k], *(const T *)place.data[1]);
        }
    }
}

YOKE_KERNEL(_dropout)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    Loop<2> loop;
    kernels::plan_ordered<2>(loop, {&out, &x}, 0, out.ndim);
    const bool is_packed = is_contiguous(x) && is_contiguous(out) && is_aligned(x.data, 16) &&
                           is_aligned(out.data, 16);
    const int threads = block_size(kThreads);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        const int64_t units = divide_up(out.numel, kDropped<T>);
        return start(launch, drop<T>, {blocks_for(launch, units, threads, kDrawBlocks), threads},
                     Walk<2>(loop), is_packed, Dropout<T>(launch));
    });
}

YOKE_CUDA_END
