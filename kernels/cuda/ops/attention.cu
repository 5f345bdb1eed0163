// Attention in tiles: a block of queries takes the blocks of keys in turn, and no matrix of scores is ever stored (T.
// Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", 2022). The kernel here supports every launch.
// attention_mma.cuh has the kernels for halves, for most launches: mma_lack says which, and why not the others.
#include "kernels/cuda/host/slow_attention.h"
#include "kernels/cuda/ops/attention_masks.cuh"
#include "kernels/cuda/ops/attention_mma.cuh"

YOKE_CUDA_BEGIN

namespace {

enum { kOut = kAttended, kLse, kOperands = kForwardOperands };

// A block of queries of one head, and a slice of the values' columns.
template <class In>
class ForwardBlock {
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    static constexpr int kEach = Tile::kEach;

public:
    __device__ ForwardBlock(const ForwardLaunch<In> &launch, int64_t head, int64_t first)
        : launch_(launch), head_(launch, head), first_(first)
    {
    }

    template <class Room, class Weights, class Strays>
    __device__ void run(int64_t column, Room &room, Weights &weights, Strays &strays)
    {
        const HeadRows<In> query = head_.query(), key = head_.key(), value = head_.value();
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) max_[i] = -(C)kernels::kInfinity, sum_[i] = (C)0;
        result_.clear();
        const int64_t keys = head_.keys_before(first_ + Tile::kSide);
        for (int64_t k = 0; k < keys; k += Tile::kSide) {
            multiply_rows<C>(query, first_, launch_.params.scale, key, k, room, scores_);
            mask_scores(k);
            weigh();
            if (launch_.params.drops) drop(k);
            __syncthreads();  // the last block's product is done
            store_scores<C>(scores_, weights);
            result_.add_product(weights, value, k, column, (int)min(Tile::kSide, keys - k), room,
                                strays, launch_.forbids_pairs());
        }
        finish(column);
    }

private:
    __device__ int64_t row(int i) const { return first_ + own_row(kEach, i); }

    // Adds the mask to the scores. Pairs that do not exist or are forbidden get -infinity.
    __device__ void mask_scores(int64_t k)
    {
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) {
            YOKE_UNROLL
            for (int j = 0; j < kEach; j++) {
                const int64_t q = row(i), key = k + own_column(j);
                if (head_.exists(q, key))
                    head_.add_mask(scores_[i][j], q, key);
                else
                    scores_[i][j] = -(C)kernels::kInfinity;
            }
        }
    }

    // Turns scores into weights, and updates the rows' maxima, sums and results. The 16 threads of a row are warp
    // lanes of the same warp.
    __device__ void weigh()
    {
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) {
            C top = max_[i], total = (C)0;
            YOKE_UNROLL
            for (int j = 0; j < kEach; j++)
                top = kernels::select(scores_[i][j] > top, scores_[i][j], top);
            for (int bits = kAcross / 2; bits > 0; bits /= 2) {
                const C other = shuffle_xor(top, bits);
                top = kernels::select(other > top, other, top);
            }
            const C shift = kernels::attention_shift(top);
            const C factor = kernels::attention_rescale(max_[i], shift);
            max_[i] = top;
            YOKE_UNROLL
            for (int j = 0; j < kEach; j++) {
                scores_[i][j] = kernels::attention_weight(scores_[i][j], shift);
                total += scores_[i][j];
            }
            for (int bits = kAcross / 2; bits > 0; bits /= 2) total += shuffle_xor(total, bits);
            sum_[i] = sum_[i] * factor + total;
            result_.scale_row(i, factor);
        }
    }

    // Applies dropout to the weights. Rows of a thread are neighbouring queries, which share a draw.
    __device__ void drop(int64_t k)
    {
        YOKE_UNROLL
        for (int j = 0; j < kEach; j++) {
            const unsigned bits =
                kept_bits(launch_.params, launch_.sizes, head_.number, k + own_column(j), row(0));
            YOKE_UNROLL
            for (int i = 0; i < kEach; i++)
                scores_[i][j] *= bits >> (row(0) % 4 + i) & 1 ? launch_.params.factor : (C)0;
        }
    }

    __device__ void finish(int64_t column)
    {
        C factor[kEach];
        YOKE_UNROLL
        for (int i = 0; i < kEach; i++) {
            factor[i] = kernels::attention_normaliser(sum_[i]);
            if (column == 0 && own_column(0) == 0 && row(i) < launch_.sizes.queries)
                launch_.lse[head_.number * launch_.sizes.queries + row(i)] =
                    kernels::attention_log_sum_exp(max_[i], sum_[i]);
        }
        result_.template store_rows<In>(head_.place.data[kOut], launch_.out, first_,
                                        launch_.sizes.queries, column, launch_.sizes.value_width,
                                        factor);
    }

    const ForwardLaunch<In> &launch_;
    const AttentionHead<In, kOperands, ForwardLaunch<In>> head_;
    const int64_t first_;
    Scores<C> scores_;
    ResultSlice<C> result_;
    C max_[kEach], sum_[kEach];
};

template <class In>
__global__ void __launch_bounds__(kAttentionThreads)
    attend(const ForwardLaunch<In> launch, int64_t blocks)
{
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    using Packed = Pack<C, Tile::kPack>;
    YOKE_SHARED(Packed, room, Tile::kRoom);
    YOKE_SHARED(C, weights, Tile::kSide * Tile::kScoreStep);
    YOKE_SHARED(int, strays, Tile::kDepth);
    for (int64_t i = blockIdx.x; i < launch.sizes.heads * blocks; i += gridDim.x) {
        // Under a causal mask late queries have more keys: they begin first.
        const int64_t head = i / blocks, block = blocks - 1 - i % blocks;
        ForwardBlock<In>(launch, head, block * Tile::kSide)
            .run(blockIdx.y * (int64_t)(Tile::kSlice * Tile::kPack), room, weights, strays);
    }
}

template <class In>
yoke_status run(const yoke_launch *launch)
{
    using C = typename In::Value;
    using Tile = AttentionTile<C>;
    const yoke_operand *o = launch->operands;
    const AttentionSizes sizes(o[kQuery], o[kKey], o[kValue]);
    const int64_t blocks = divide_up(sizes.queries, Tile::kSide), items = sizes.heads * blocks;
    const int64_t slices = max(1, divide_up(sizes.value_width, Tile::kSlice * Tile::kPack));
    if (items == 0) return YOKE_OK;
    using Work = AttentionWork<In, kOperands>;
    const yoke_operand *const operands[] = {&o[kQuery], &o[kKey], &o[kValue], &o[kMask], &o[kOut]};
    const Loop<kOperands> heads = Work::plan(operands);
    const ForwardLaunch<In> work{Work(launch, operands, heads), Work::rows(operands, heads, kOut),
                                 data_of<C>(o[kLse])};
    if constexpr (std::is_same_v<In, Floats>)
        if (mma_lack(launch, work, operands, heads, {kQuery, kKey, kValue, kOut}) == MmaLack::kNone)
            return start_mma(launch, work);
    if (sizes.keys) tell_slow_attention(launch, o[kQuery].dtype, sizes.width, sizes.value_width);
    return start(launch, attend<In>, {min(items, (int64_t)1 << 30), kAttentionThreads, 0, slices},
                 work, blocks);
}

}  // namespace

YOKE_KERNEL(_attention)
{
    bool done = false;
    const yoke_status status = cudnn_attend(launch, kAttentionKernels, &done);
    if (status || done) return status;
    return for_float_format(launch, "query", launch->operands[0].dtype,
                            [&]<class In>() { return run<In>(launch); });
}

YOKE_CUDA_END
