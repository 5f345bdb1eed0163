// Kernels over the tensors of a list: the arguments have a table of tensors, and each chunk of a tensor has a block.
//
// Contract
//  * An operation Op on elements, derived from OpOn, works on kOperands tensors of one shape:
//      kReads, kWrites         bit k: operand k is read before, written after; a merely written operand may be absent
//      kElements               elements of a tensor for a thread at once, so enough bytes are in flight
//      is_skipped()            whether to change no value; asked on the device
//      settle(data) → Settled  values common to all elements of a tensor, found once for a block; data[kOperands…]
//                              are the tensor's further pointers
//      op(settled, x, sum)     handles an element: x holds its operands; sum belongs to the thread
//      finish(sum)             called by all threads of a block together, at its end
//      starts_at(block)        called on the host before each launch, with the blocks of earlier launches of the list
#pragma once

#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

// The dtypes of an Op's operands.
template <int N>
struct Kind {
    yoke_dtype dtype[N];
};

struct Nothing {};

// Common members of most operations. They compute in C and read and write the operands of the two masks.
template <class C, int N, unsigned reads, unsigned writes, int bytes>
struct OpOn {
    using Compute = C;
    using Settled = Nothing;
    using Sum = Nothing;
    static constexpr int kOperands = N, kPointers = N, kElements = bytes / (int)sizeof(C);
    static constexpr unsigned kReads = reads, kWrites = writes;

    __device__ bool is_skipped() const { return false; }
    __device__ void finish(Nothing) const {}
    void starts_at(int64_t) const {}
};

// ---- tables of tensors --------------------------------------------------------------------------------------------

// CUDA takes 32,764 bytes of arguments; few tensors fit into less, which is faster to launch.
constexpr int kFewBytes = 4096, kManyBytes = 32764, kOpBytes = 128;

// Table of tensors whose operands have the same dtypes.
template <int P, int bytes>
struct Table {
    static constexpr int kBytes = bytes;
    static constexpr int kCapacity = (kBytes - kOpBytes - 40 - 8 * P) / (8 * P + 13);
    int64_t chunk = 0, apart = 0;  // apart: distance of the halves of a pack
    int dtype[P], size[P];
    int32_t count = 0;
    uint32_t first[kCapacity + 1];  // each tensor's first chunk; at the end, how many there are
    int64_t numel[kCapacity];
    char *data[kCapacity][P];
    bool is_packed[kCapacity];

    __device__ int tensor_of(uint32_t block) const
    {
        int low = 0, high = count;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (first[middle] <= block)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
};

// ---- kernels ------------------------------------------------------------------------------------------------------

template <class Op>
__device__ inline typename Op::Settled settle_once(const Op &op, char *const *data)
{
    if constexpr (std::is_empty_v<typename Op::Settled>) {
        return {};
    } else {
        YOKE_SHARED(typename Op::Settled, settled, 1);
        if (threadIdx.x == 0) settled[0] = op.settle(data);
        __syncthreads();
        return settled[0];
    }
}

// A thread's part of a tensor.
template <class Op, class Tensors>
struct Part {
    using C = typename Op::Compute;
    using Format = FormatOf<C>;
    static constexpr int kOperands = Op::kOperands;
    const Op &op;
    const Tensors &table;
    const typename Op::Settled &settled;
    typename Op::Sum &sum;
    char *const (&data)[Op::kPointers];

    // Takes U times N elements, `step` apart, their halves `apart`. All are read before the first is written, so the
    // reads wait together.
    template <int U, int N>
    __device__ void take(int64_t at, int64_t step, int64_t apart) const
    {
        Stored<Format, N> stored[U][kOperands];
        YOKE_UNROLL
        for (int u = 0; u < U; u++) {
            YOKE_UNROLL
            for (int k = 0; k < kOperands; k++)
                if (Op::kReads >> k & 1u)
                    stored[u][k].load(data[k], table.size[k], at + u * step, apart);
        }
        YOKE_UNROLL
        for (int u = 0; u < U; u++) compute(stored[u], at + u * step, apart);
    }

    template <int N>
    __device__ void compute(const Stored<Format, N> (&stored)[kOperands], int64_t at,
                            int64_t apart) const
    {
        C x[kOperands][N] = {};
        YOKE_UNROLL
        for (int k = 0; k < kOperands; k++)
            if (Op::kReads >> k & 1u) stored[k].unpack(table.dtype[k], x[k]);
        YOKE_UNROLL
        for (int i = 0; i < N; i++) {
            C element[kOperands];
            YOKE_UNROLL
            for (int k = 0; k < kOperands; k++) element[k] = x[k][i];
            op(settled, element, sum);
            YOKE_UNROLL
            for (int k = 0; k < kOperands; k++) x[k][i] = element[k];
        }
        YOKE_UNROLL
        for (int k = 0; k < kOperands; k++)
            if ((Op::kWrites >> k & 1u) && data[k])
                put_run<Format>(data[k], table.dtype[k], at, apart, x[k]);
    }
};

template <class Op, class Tensors>
__global__ void over_table(Tensors table, Op op)
{
    constexpr int N = kAtOnce<typename Op::Compute>, U = Op::kElements > N ? Op::kElements / N : 1;
    if (op.is_skipped()) return;
    const int tensor = table.tensor_of(blockIdx.x), threads = (int)blockDim.x;
    const int64_t begin = (int64_t)(blockIdx.x - table.first[tensor]) * table.chunk,
                  n = min(table.chunk, table.numel[tensor] - begin),
                  packs = table.is_packed[tensor] ? n / (kWarp * N) * kWarp : 0;
    char *data[Op::kPointers];
    YOKE_UNROLL
    for (int k = 0; k < Op::kPointers; k++) data[k] = table.data[tensor][k];
    const auto settled = settle_once(op, data);
    typename Op::Sum sum{};
    const Part<Op, Tensors> part{op, table, settled, sum, data};
    int64_t pack = threadIdx.x;
    for (; pack + (U - 1) * threads < packs; pack += U * threads)
        part.template take<U, N>(begin + place_of_pack(pack, N, table.apart), (int64_t)threads * N,
                                 table.apart);
    for (; pack < packs; pack += threads)
        part.template take<1, N>(begin + place_of_pack(pack, N, table.apart), 0, table.apart);
    for (int64_t i = packs * N + threadIdx.x; i < n; i += threads)
        part.template take<1, 1>(begin + i, 0, 0);
    op.finish(sum);
}

#define YOKE_LOAD_CASE(value, type) \
    case value:                     \
        return convert<C>(*(const type *)place);
#define YOKE_STORE_CASE(value, type)       \
    case value:                            \
        *(type *)place = convert<type>(x); \
        return;

template <class C>
__device__ inline C load_as(yoke_dtype dtype, const char *place)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_LOAD_CASE)
    }
    return C(0);
}

template <class C>
__device__ inline void store_as(yoke_dtype dtype, char *place, C x)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_STORE_CASE)
    }
}

#undef YOKE_LOAD_CASE
#undef YOKE_STORE_CASE

// Tensor for the general kernel. Absent operands walk with the first operand.
template <class Op>
struct Strided {
    Walk<Op::kOperands> walk;
    yoke_dtype dtype[Op::kOperands];
    char *data[Op::kPointers];
    int64_t chunk;
};

template <class Op>
__global__ void over_strided(Strided<Op> tensor, Op op)
{
    using C = typename Op::Compute;
    constexpr int N = Op::kOperands;
    if (op.is_skipped()) return;
    const auto settled = settle_once(op, tensor.data);
    typename Op::Sum sum{};
    const int64_t begin = blockIdx.x * tensor.chunk,
                  end = min(tensor.walk.numel, begin + tensor.chunk);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const Place<N> place = tensor.walk.at(i);
        C x[N] = {};
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if (Op::kReads >> k & 1u) x[k] = load_as<C>(tensor.dtype[k], place.data[k]);
        op(settled, x, sum);
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if ((Op::kWrites >> k & 1u) && tensor.data[k])
                store_as<C>(tensor.dtype[k], place.data[k], x[k]);
    }
    op.finish(sum);
}

YOKE_CUDA_END
