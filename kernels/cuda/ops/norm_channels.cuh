// What batch_norm, group_norm and their gradients share: parameters by channel, the memory of a call, and numbers made
// of sums.
#pragma once

#include "kernels/cuda/ops/planes.cuh"

YOKE_CUDA_BEGIN

// A parameter by channel, of x's dtype or float32; absent, it has one value throughout.
template <class C>
struct ByChannel {
    const void *data;
    int64_t step;  // elements
    yoke_dtype dtype;
    C otherwise;

    ByChannel(const yoke_operand &p, C value)
        : data(is_present(p) ? p.data : nullptr),
          step(is_present(p) && p.numel > 1 ? p.strides[0] : 0),
          dtype(p.dtype),
          otherwise(value)
    {
    }
    __device__ C operator[](int64_t channel) const
    {
        if (!data) return otherwise;
        const int64_t at = channel * step;
        switch (dtype) {
            case YOKE_F64:
                return (C) static_cast<const double *>(data)[at];
            case YOKE_F16:
                return (C)load<f16>(static_cast<const f16 *>(data)[at]);
            case YOKE_BF16:
                return (C)load<bf16>(static_cast<const bf16 *>(data)[at]);
            default:
                return (C) static_cast<const float *>(data)[at];
        }
    }
};

// The memory of one call: partial sums, then the planes' sums, then numbers.
template <class State, class C>
struct Room {
    Scratch scratch;
    State *partial = nullptr, *sums = nullptr;
    C *numbers = nullptr;

    explicit Room(const yoke_launch *launch) : scratch(launch) {}
    yoke_status reserve(int64_t partials, int64_t planes, int64_t numbers_a_plane)
    {
        const uint64_t states = (uint64_t)(partials + planes) * sizeof(State);
        const uint64_t bytes = states + (uint64_t)(planes * numbers_a_plane) * sizeof(C);
        if (const yoke_status status = scratch.reserve(bytes)) return status;
        partial = scratch.as<State>();
        sums = partial + partials;
        numbers = reinterpret_cast<C *>(sums + planes);
        return YOKE_OK;
    }
};

// f(i) for i below n, a thread each.
template <class F>
__global__ void for_each(int64_t n, F f)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        f(i);
}

template <class F>
inline yoke_status start_each(const yoke_launch *launch, int64_t n, const F &f)
{
    const int threads = block_size(kThreads);
    if (n == 0) return YOKE_OK;
    return start(launch, for_each<F>, {blocks_for(launch, n, threads), threads}, n, f);
}

YOKE_CUDA_END
