// Gradients of attention. Probabilities are computed again from the rows' log-sum-exp. In one kernel, a block of
// queries takes every block of keys and gives dQ. In another kernel, a block of keys takes every block of queries and
// gives dK and dV. Every sum has one owner, so results do not depend on the order of blocks.
#include "kernels/cuda/host/slow_attention.h"
#include "kernels/cuda/ops/attention_masks.cuh"
#include "kernels/cuda/ops/attention_mma_backward.cuh"

YOKE_CUDA_BEGIN

namespace {

enum { kOperands = kBackwardOperands };

// Context of a block of threads: shared memory, and the results' columns from `column` on.
template <class Room, class Tile, class Strays>
struct BlockContext {
    Room &room;      // operands of products
    Tile &tile;      // scores
    Strays &strays;  // rows with what is not finite
    bool forbids;    // the launch forbids pairs
    int64_t column;
};

// ---- dQ -------------------------------------------------------------------------------------------------------------

// Turns scores into their gradients, 0 for missing or forbidden pairs. Rows are queries; `slopes` are the gradients
// of probabilities.
template <class In, class C>
__device__ inline void differentiate(const BackwardHead<In> &head, int64_t first, int64_t k,
                                     Scores<C> &scores, const Scores<C> &slopes)
{
    constexpr int kEach = AttentionTile<C>::kEach;
    const auto &params = head.launch.params;
    YOKE_UNROLL
    for (int j = 0; j < kEach; j++) {
        const int64_t key = k + own_column(j), query = first + own_row(kEach, 0);
        const unsigned kept =
            params.drops ? kept_bits(params, head.launch.sizes, head.number, key, query) : 0;
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) {
            const int64_t q = query + i;
            C slope = (C)0;
            if (head.exists(q, key)) {
                const C factor = !params.drops                 ? (C)1
                                 : kept >> (query % 4 + i) & 1 ? params.factor
                                                               : (C)0;
                slope = kernels::attention_score_backward(head.probability(scores[i][j], q, key),
                                                          (C)(slopes[i][j] * factor), head.dot(q));
            }
            scores[i][j] = slope;
        }
    }
}

template <class In, class Block>
__device__ inline void differentiate_queries(const BackwardHead<In> &head, int64_t first,
                                             const Block &block)
{
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    const BackwardLaunch<In> &launch = head.launch;
    const AttentionSizes &s = launch.sizes;
    const int64_t keys = head.keys_before(first + Tile::kSide);
    Scores<C> scores, slopes;
    ResultSlice<C> result;
    result.clear();
    for (int64_t k = 0; k < keys; k += Tile::kSide) {
        multiply_rows<C>(head.query(), first, launch.params.scale, head.key(), k, block.room,
                         scores);
        multiply_rows<C>(head.grad(), first, (C)1, head.value(), k, block.room, slopes);
        differentiate<In, C>(head, first, k, scores, slopes);
        __syncthreads();  // the last block's product is done
        store_scores<C>(scores, block.tile);
        result.add_product(block.tile, head.key(), k, block.column, (int)min(Tile::kSide, keys - k),
                           block.room, block.strays, block.forbids);
    }
    C factor[Tile::kEach];
    for (int i = 0; i < Tile::kEach; i++) factor[i] = launch.params.scale;
    result.template store_rows<In>(head.place.data[kQueryGrad], launch.d_query, first, s.queries,
                                   block.column, s.width, factor);
}

// ---- dK and dV ------------------------------------------------------------------------------------------------------

// Draws dropout's factors of pairs; rows are keys. A draw serves four neighbouring queries: columns of four
// neighbouring warp lanes. Each of these lanes draws for a row, and the lanes exchange the bits.
template <class In, class C>
__device__ inline void draw_factors(const BackwardHead<In> &head, int64_t first, int64_t q,
                                    Scores<C> &factors)
{
    constexpr int kEach = AttentionTile<C>::kEach;
    const auto &params = head.launch.params;
    const int in_warp = place_in_warp();
    YOKE_UNROLL
    for (int j = 0; j < kEach; j++) {
        const unsigned mine =
            params.drops ? kept_bits(params, head.launch.sizes, head.number,
                                     first + own_row(kEach, in_warp % kEach), q + own_column(j))
                         : 0;
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) {
            const unsigned bits =
                params.drops ? __shfl_sync(kWholeWarp, mine, in_warp / 4 * 4 + i) : 0;
            factors[i][j] = !params.drops ? (C)1 : bits >> in_warp % 4 & 1 ? params.factor : (C)0;
        }
    }
}

template <class In, class C>
__device__ inline void find_probabilities(const BackwardHead<In> &head, int64_t first, int64_t q,
                                          Scores<C> &scores)
{
    constexpr int kEach = AttentionTile<C>::kEach;
    YOKE_UNROLL
    for (int i = 0; i < kEach; i++) {
        YOKE_UNROLL
        for (int j = 0; j < kEach; j++) {
            const int64_t key = first + own_row(kEach, i), query = q + own_column(j);
            scores[i][j] =
                head.exists(query, key) ? head.probability(scores[i][j], query, key) : (C)0;
        }
    }
}

// Turns the gradients of probabilities into gradients of scores, 0 for missing or forbidden pairs. Rows are keys.
template <class In, class C>
__device__ inline void find_slopes(const BackwardHead<In> &head, int64_t first, int64_t q,
                                   const Scores<C> &probabilities, const Scores<C> &factors,
                                   Scores<C> &slopes)
{
    constexpr int kEach = AttentionTile<C>::kEach;
    YOKE_UNROLL
    for (int i = 0; i < kEach; i++) {
        YOKE_UNROLL
        for (int j = 0; j < kEach; j++) {
            const int64_t key = first + own_row(kEach, i), query = q + own_column(j);
            slopes[i][j] =
                head.exists(query, key)
                    ? kernels::attention_score_backward(
                          probabilities[i][j], (C)(slopes[i][j] * factors[i][j]), head.dot(query))
                    : (C)0;
        }
    }
}

template <class C>
__device__ inline void multiply_scores(const Scores<C> &a, const Scores<C> &b, Scores<C> &to)
{
    constexpr int kEach = AttentionTile<C>::kEach;
    YOKE_UNROLL
    for (int i = 0; i < kEach * kEach; i++)
        to[i / kEach][i % kEach] = a[i / kEach][i % kEach] * b[i / kEach][i % kEach];
}

template <class In, class Block>
__device__ inline void differentiate_keys(const BackwardHead<In> &head, int64_t first,
                                          const Block &block)
{
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    const BackwardLaunch<In> &launch = head.launch;
    const AttentionSizes &s = launch.sizes;
    Scores<C> probabilities, factors, slopes;
    ResultSlice<C> d_key, d_value;
    d_key.clear();
    d_value.clear();
    for (int64_t q = head.first_query(first); q < s.queries; q += Tile::kSide) {
        const int count = (int)min(Tile::kSide, s.queries - q);
        multiply_rows<C>(head.key(), first, launch.params.scale, head.query(), q, block.room,
                         probabilities);
        find_probabilities<In, C>(head, first, q, probabilities);
        draw_factors<In, C>(head, first, q, factors);
        multiply_rows<C>(head.value(), first, (C)1, head.grad(), q, block.room, slopes);
        find_slopes<In, C>(head, first, q, probabilities, factors, slopes);
        if (block.column < s.value_width) {
            multiply_scores<C>(probabilities, factors, probabilities);
            // The rows' product has waited since the tile was last read: values have a column here.
            store_scores<C>(probabilities, block.tile);
            d_value.add_product(block.tile, head.grad(), q, block.column, count, block.room,
                                block.strays, block.forbids);
        }
        if (block.column < s.width) {
            __syncthreads();
            store_scores<C>(slopes, block.tile);
            d_key.add_product(block.tile, head.query(), q, block.column, count, block.room,
                              block.strays, block.forbids);
        }
    }
    C scale[Tile::kEach], one[Tile::kEach];
    for (int i = 0; i < Tile::kEach; i++) scale[i] = launch.params.scale, one[i] = (C)1;
    d_key.template store_rows<In>(head.place.data[kKeyGrad], launch.d_key, first, s.keys,
                                  block.column, s.width, scale);
    d_value.template store_rows<In>(head.place.data[kValueGrad], launch.d_value, first, s.keys,
                                    block.column, s.value_width, one);
}

// ---- both kernels ---------------------------------------------------------------------------------------------------

// Computes dQ, or with kOfKeys dK and dV, in `blocks` blocks of rows for each head. Late queries have most keys, and
// come first.
template <class In, bool kOfKeys>
__global__ void __launch_bounds__(kAttentionThreads)
    differentiate_rows(const BackwardLaunch<In> launch, int64_t blocks)
{
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    using Packed = Pack<C, Tile::kPack>;
    YOKE_SHARED(Packed, room, Tile::kRoom);
    YOKE_SHARED(C, tile, Tile::kSide * Tile::kScoreStep);
    YOKE_SHARED(int, strays, Tile::kDepth);
    const BlockContext<decltype(room), decltype(tile), decltype(strays)> block{
        room, tile, strays, launch.forbids_pairs(),
        blockIdx.y * (int64_t)(Tile::kSlice * Tile::kPack)};
    for (int64_t item = blockIdx.x; item < launch.sizes.heads * blocks; item += gridDim.x) {
        const BackwardHead<In> head(launch, item / blocks);
        if constexpr (kOfKeys)
            differentiate_keys(head, item % blocks * Tile::kSide, block);
        else
            differentiate_queries(head, (blocks - 1 - item % blocks) * Tile::kSide, block);
    }
}

// ---- the entry ------------------------------------------------------------------------------------------------------

template <class In>
yoke_status start_all(const yoke_launch *launch, const BackwardLaunch<In> &work)
{
    using Tile = AttentionTile<typename In::Value>;
    const AttentionSizes &s = work.sizes;
    const int64_t slice = Tile::kSlice * Tile::kPack, most = (int64_t)1 << 30;
    const int64_t queries = divide_up(s.queries, Tile::kSide),
                  keys = divide_up(s.keys, Tile::kSide);
    yoke_status status = YOKE_OK;
    if (queries && s.width)
        status =
            start(launch, differentiate_rows<In, false>,
                  {min(s.heads * queries, most), kAttentionThreads, 0, divide_up(s.width, slice)},
                  work, queries);
    if (!status && keys && (s.width || s.value_width))
        status = start(launch, differentiate_rows<In, true>,
                       {min(s.heads * keys, most), kAttentionThreads, 0,
                        divide_up(max(s.width, s.value_width), slice)},
                       work, keys);
    return status;
}

template <class In>
yoke_status run(const yoke_launch *launch)
{
    using C = typename In::Value;
    using Work = AttentionWork<In, kOperands>;
    const yoke_operand *o = launch->operands;
    const AttentionSizes s(o[1], o[2], o[3]);
    if (s.heads == 0) return YOKE_OK;
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve((uint64_t)(s.heads * s.queries) * sizeof(C)))
        return status;
    const yoke_operand *const ordered[kOperands] = {&o[1], &o[2], &o[3], &o[4], &o[0],
                                                    &o[5], &o[7], &o[8], &o[9]};
    const Loop<kOperands> heads = Work::plan(ordered);
    const auto rows = [&](int i) { return Work::rows(ordered, heads, i); };
    const BackwardLaunch<In> work{Work(launch, ordered, heads),
                                  rows(kGrad),
                                  rows(kOut),
                                  rows(kQueryGrad),
                                  rows(kKeyGrad),
                                  rows(kValueGrad),
                                  data_of<const C>(o[6]),
                                  scratch.as<C>()};
    const int threads = block_size(kThreads);
    if (s.queries)
        if (const yoke_status status =
                start(launch, find_dots<In>,
                      {blocks_for(launch, s.heads * s.queries, threads / kWarp), threads}, work))
            return status;
    if constexpr (std::is_same_v<In, Floats>)
        if (mma_lack(launch, work, ordered, heads,
                     {kQuery, kKey, kValue, kGrad, kQueryGrad, kKeyGrad, kValueGrad}) ==
            MmaLack::kNone)
            return start_gradients(launch, work);
    if (s.queries && s.keys) tell_slow_attention(launch, o[1].dtype, s.width, s.value_width);
    return start_all<In>(launch, work);
}

}  // namespace

YOKE_KERNEL(_attention_backward)
{
    bool done = false;
    const yoke_status status = cudnn_attend(launch, kAttentionKernels, &done);
    if (status || done) return status;
    return for_float_format(launch, "query", launch->operands[1].dtype,
                            [&]<class In>() { return run<In>(launch); });
}

YOKE_CUDA_END
