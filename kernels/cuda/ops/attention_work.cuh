// Work of attention's forward and backward kernels: a launch's heads, and the queries, keys and values of each head.
#pragma once

#include "kernels/cuda/ops/attention.cuh"

YOKE_CUDA_BEGIN

// First operands of the loop over heads. Operand kQuery gives the loop's shape.
enum { kQuery, kKey, kValue, kMask, kAttended };

template <class In, int N>
struct AttentionWork {
    using C = typename In::Value;
    AttentionSizes sizes;
    AttentionParams<C> params;
    Walk<N> heads;
    AttentionRows query, key, value, mask;
    bool has_mask, bool_mask;

    AttentionWork(const yoke_launch *launch, const yoke_operand *const (&operands)[N],
                  const Loop<N> &loop)
        : sizes(*operands[kQuery], *operands[kKey], *operands[kValue]),
          params(launch),
          heads(loop),
          query(rows(operands, loop, kQuery)),
          key(rows(operands, loop, kKey)),
          value(rows(operands, loop, kValue)),
          mask(rows(operands, loop, kMask)),
          has_mask(is_present(*operands[kMask])),
          bool_mask(operands[kMask]->dtype == YOKE_BOOL)
    {
    }
    // Returns whether the launch forbids pairs. If not, NaN passes through the products unchanged.
    __device__ bool forbids_pairs() const { return has_mask || params.causal; }
    static Loop<N> plan(const yoke_operand *const (&operands)[N])
    {
        Loop<N> loop;
        plan_ordered<N>(loop, operands, 0, operands[kQuery]->ndim - 2);
        return loop;
    }
    static AttentionRows rows(const yoke_operand *const (&operands)[N], const Loop<N> &loop, int i)
    {
        return AttentionRows(*operands[i], loop, i, AttentionTile<C>::kPack);
    }
};

// Head of a launch, whose work is an AttentionWork<In, N>.
template <class In, int N, class Work>
struct AttentionHead {
    using C = typename In::Value;
    const Work &launch;
    const Place<N> place;
    const int64_t number;

    __device__ AttentionHead(const Work &work, int64_t head)
        : launch(work), place(work.heads.at(head)), number(head)
    {
    }
    __device__ HeadRows<In> query() const
    {
        return {place.data[kQuery], launch.sizes.queries, launch.sizes.width, launch.query};
    }
    __device__ HeadRows<In> key() const
    {
        return {place.data[kKey], launch.sizes.keys, launch.sizes.width, launch.key};
    }
    __device__ HeadRows<In> value() const
    {
        return {place.data[kValue], launch.sizes.keys, launch.sizes.value_width, launch.value};
    }
    __device__ bool exists(int64_t q, int64_t k) const
    {
        return q < launch.sizes.queries && k < launch.sizes.keys &&
               (!launch.params.causal || k <= q);
    }
    // Adds the mask, if there is a mask, to the score of a pair that exists.
    __device__ void add_mask(C &score, int64_t q, int64_t k) const
    {
        const HeadMask<In> mask{place.data[kMask], launch.bool_mask, launch.mask};
        if (launch.has_mask) score = kernels::attention_masked(score, mask.at(q, k));
    }
    // Returns how many keys the queries before `end` see.
    __device__ int64_t keys_before(int64_t end) const
    {
        return launch.params.causal ? min(launch.sizes.keys, end) : launch.sizes.keys;
    }
    // Returns the first query that sees key `k`.
    __device__ int64_t first_query(int64_t k) const { return launch.params.causal ? k : 0; }
};

// A launch of the forward kernels.
constexpr int kForwardOperands = kAttended + 1;
template <class In>
struct ForwardLaunch : AttentionWork<In, kForwardOperands> {
    AttentionRows out;
    typename In::Value *lse;  // dense
};

// Returns the tile's row of a thread's row i, if each thread has `each` rows.
__device__ inline int own_row(int each, int i)
{
    return (int)threadIdx.x / kAcross * each + i;
}

// Returns the tile's column of a thread's column j.
__device__ inline int own_column(int j)
{
    return (int)threadIdx.x % kAcross + j * kAcross;
}

YOKE_CUDA_END
