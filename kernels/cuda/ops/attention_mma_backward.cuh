// The gradients of attention of halves by tensor cores, as attention_backward.cu has them: a block of queries meets
// every tile of keys for dQ, a block of keys every tile of queries for dK and dV.
//
// Both are one kernel. The block's own rows and the others are (queries, keys) of the scores and (gradients of the
// result, values) of the gradients of the weights, or the other way round. While one of the others' two tiles is
// multiplied, the next of the other kind is copied. Launches with a mask or with dropout have kernels of their own
// (kGeneral), in which log-sum-exps are as stored; else they are exponents of 2.
#pragma once

#include "kernels/cuda/ops/attention_gradients.cuh"
#include "kernels/cuda/ops/attention_mma_pairs.cuh"

YOKE_CUDA_BEGIN

template <int kWidth>
struct MmaGradientTile {
    static constexpr int kParts = kWidth == 64 ? 2 : 1;
    static constexpr int kWarpRows = kMmaRows * kParts, kRows = kMmaWarps * kWarpRows;
    static constexpr int kOthers = 32;
    static constexpr int kChunks = kWidth / 8;
};

// Launch with the scores' factor. Read from the launch, the factor takes no registers, of which none are free.
struct MmaBackwardLaunch : BackwardLaunch<Floats> {
    float scale, exponent;  // factor of a score, and the factor that turns it into an exponent of 2
    float kept_scale;       // factor of a score's gradient by a weight that dropout keeps

    explicit MmaBackwardLaunch(const BackwardLaunch<Floats> &launch)
        : BackwardLaunch<Floats>(launch),
          scale((float)launch.params.scale),
          exponent((float)(launch.params.scale * kMmaExponent)),
          kept_scale((float)(launch.params.scale * launch.params.factor))
    {
    }
};

// Block of rows of a head, as seen by a warp lane.
template <class T, int kWidth, bool kOfKeys, bool kGeneral>
class MmaGradients {
    using Tile = MmaGradientTile<kWidth>;
    static constexpr int kParts = Tile::kParts, kOthers = Tile::kOthers;
    using Copies = RowCopies<Tile::kChunks>;
    using Products = MmaSums<kParts, kOthers>;

public:
    __device__ MmaGradients(const MmaBackwardLaunch &launch, int64_t head, int first)
        : launch_(launch),
          head_(launch, head),
          first_(first),
          first_own_(first + warp_of_thread() * Tile::kWarpRows),
          lane_(place_in_warp())
    {
    }

    // Computes the gradients of a block. `own` and `others` are the rows of scores; `own_slopes` and `other_slopes`
    // are the rows of weights' gradients.
    template <class Own, class Others>
    __device__ void run(Own &own, Own &own_slopes, Others &others, Others &other_slopes)
    {
        const int begin = kOfKeys ? (int)head_.first_query(first_) : 0,
                  end = kOfKeys ? queries() : (int)head_.keys_before(first_ + Tile::kRows);
        begin_rows();
        Copies next(other_rows(), begin), next_slopes(other_slope_rows(), begin);
        if (begin < end) {
            Copies(own_rows(), first_).template begin<Tile::kRows>(own);
            Copies(own_slope_rows(), first_).template begin<Tile::kRows>(own_slopes);
            next_slopes.template begin<kOthers>(other_slopes);
            close_copies();
            next.template begin<kOthers>(others);
            close_copies();
        }
        const int in_block = warp_of_thread() * Tile::kWarpRows;
        for (int at = begin; at < end; at += kOthers) {
            const bool more = at + kOthers < end, meets = meets_any(at);
            wait_for_older_copies();
            __syncthreads();  // the others' slopes are there
            if (meets)
                multiply_rows<T, kWidth, kParts, kOthers>(own_slopes, in_block, other_slopes,
                                                          slopes_);
            wait_for_copies();
            __syncthreads();  // the others are there
            if (!kOfKeys) copy_next(next_slopes, other_slopes, more);
            if (meets) {
                multiply_rows<T, kWidth, kParts, kOthers>(own, in_block, others, weights_);
                if constexpr (kGeneral)
                    differentiate_general(at);
                else
                    differentiate(at);
            }
            if constexpr (kOfKeys) {
                add(weights_, other_slopes, at, meets, slope_sums_);
                __syncthreads();  // the others' slopes are done with
                copy_next(next_slopes, other_slopes, more);
            }
            add(slopes_, others, at, meets, sums_);
            __syncthreads();  // the others are done with
            copy_next(next, others, more);
        }
        finish();
    }

private:
    using Rows = HeadRows<Floats>;
    __device__ Rows own_rows() const { return kOfKeys ? head_.key() : head_.query(); }
    __device__ Rows own_slope_rows() const { return kOfKeys ? head_.value() : head_.grad(); }
    __device__ Rows other_rows() const { return kOfKeys ? head_.query() : head_.key(); }
    __device__ Rows other_slope_rows() const { return kOfKeys ? head_.grad() : head_.value(); }

    template <class Room>
    __device__ static void copy_next(Copies &next, Room &room, bool more)
    {
        if (more) next.template begin<kOthers>(room);
        close_copies();
    }

    __device__ int row(int part, int i) const
    {
        return first_own_ + part * kMmaRows + i * 8 + lane_ / 4;
    }

    // Returns the number of queries. Lengths fit an int, and so do the queries of all heads, because mma_lack
    // checks them.
    __device__ int queries() const { return (int)launch_.sizes.queries; }
    __device__ int first_query() const { return (int)head_.number * queries(); }

    // Returns a query's log-sum-exp, not kGeneral as an exponent of 2. A missing query has 0, which is never used.
    __device__ float lse_of(int query) const
    {
        constexpr float kFactor = kGeneral ? 1.0f : (float)kMmaExponent;
        return query < queries() ? launch_.lse[first_query() + query] * kFactor : 0.0f;
    }
    // Returns a query's dot product, times the scores' factor. A missing query has 0, which is never used.
    __device__ float dot_of(int query) const
    {
        return query < queries() ? launch_.dots[first_query() + query] * launch_.scale : 0.0f;
    }

    __device__ void begin_rows()
    {
        clear<kParts, kWidth>(sums_);
        if constexpr (kOfKeys) {
            clear<kParts, kWidth>(slope_sums_);
        } else {
            YOKE_UNROLL
            for (int i = 0; i < kParts * 2; i++)
                lse_[i] = lse_of(row(i / 2, i % 2)), dot_[i] = dot_of(row(i / 2, i % 2));
        }
    }

    // Returns the first of the others that a row sees.
    __device__ int first_met(int own) const { return kOfKeys ? (int)head_.first_query(own) : 0; }
    // Returns the end of the others that a row sees.
    __device__ int last_met(int own) const
    {
        return kOfKeys ? queries() : (int)head_.keys_before(own + 1);
    }
    __device__ bool meets_any(int at) const
    {
        return kOfKeys ? at + kOthers > first_met(first_own_)
                       : at < last_met(first_own_ + Tile::kWarpRows - 1);
    }
    __device__ bool meets_all(int at) const
    {
        return at >= first_met(first_own_ + Tile::kWarpRows - 1) &&
               at + kOthers <= last_met(first_own_);
    }

    // Returns whether every row of the block sees all others of the tile at `at`: no pair is forbidden or missing.
    __device__ bool meet_all(int at) const
    {
        return at >= first_met(first_ + Tile::kRows - 1) && at + kOthers <= last_met(first_);
    }

    // Adds factors times the others to sums, if the warp's rows see any of them (`meets`). Forbidden pairs add 0. All
    // warps of the block call this.
    template <class Others>
    __device__ void add(const Products &factors, Others &others, int at, bool meets,
                        MmaSums<kParts, kWidth> &sums) const
    {
        if (!meet_all(at) || (kGeneral && launch_.has_mask))
            take_strays<T, kWidth, kParts, kOthers>(factors, others, meets, sums);
        if (meets) add_product<T, kWidth, kParts, kOthers>(factors, others, sums);
    }

    // Turns scores into weights, and gradients of weights into gradients of scores.
    __device__ void differentiate(int at)
    {
        YOKE_UNROLL
        for (int j = 0; j < kOthers / 8; j++) {
            const int first = unknown(at + j * 8 + lane_ % 4 * 2);
            YOKE_UNROLL
            for (int c = 0; c < 2; c++) {
                const int other = first + c;
                const float lse = kOfKeys ? lse_of(other) : 0.0f,
                            dot = kOfKeys ? dot_of(other) : 0.0f;
                YOKE_UNROLL
                for (int i = 0; i < kParts * 2; i++) {
                    float &weight = weights_[i / 2][j][i % 2 * 2 + c],
                          &slope = slopes_[i / 2][j][i % 2 * 2 + c];
                    weight = fast_exp2(fmaf(weight, launch_.exponent, -(kOfKeys ? lse : lse_[i])));
                    // Scaled before it is narrowed: float16 ends at 65,504.
                    slope = weight * fmaf(slope, launch_.scale, -(kOfKeys ? dot : dot_[i]));
                }
            }
        }
        if (!meets_all(at)) mask_products(at);
    }

    // Does the same under a mask and dropout. A weight of 0 passes no gradient on.
    __device__ void differentiate_general(int at)
    {
        find_scores<T, kOfKeys, kParts, kOthers>(head_, first_own_, at, launch_.scale, weights_);
        const KeptPairs<kOfKeys, kParts, kOthers> kept(head_, first_own_, at);
        YOKE_UNROLL
        for (int j = 0; j < kOthers / 8; j++) {
            YOKE_UNROLL
            for (int c = 0; c < 2; c++) {
                const int other = unknown(at + j * 8 + lane_ % 4 * 2) + c;
                const float lse = kOfKeys ? lse_of(other) : 0.0f,
                            dot = kOfKeys ? dot_of(other) : 0.0f;
                YOKE_UNROLL
                for (int i = 0; i < kParts * 2; i++) {
                    float &weight = weights_[i / 2][j][i % 2 * 2 + c],
                          &slope = slopes_[i / 2][j][i % 2 * 2 + c];
                    const float whole = probability_of(weight, kOfKeys ? lse : lse_[i]);
                    const bool keeps = kept.keeps(i / 2, i % 2, j, c);
                    slope =
                        fmaf(keeps ? slope : 0.0f, launch_.kept_scale, -(kOfKeys ? dot : dot_[i]));
                    slope = whole == 0.0f ? 0.0f : whole * slope;
                    weight = keeps ? whole : 0.0f;
                }
            }
        }
    }

    // Sets the weights and gradients of pairs that do not exist or are forbidden to 0.
    __device__ void mask_products(int at)
    {
        YOKE_UNROLL
        for (int i = 0; i < kParts * 2; i++) {
            const int own = row(i / 2, i % 2), column = at + lane_ % 4 * 2;
            const int from = first_met(own) - column, to = last_met(own) - column;
            YOKE_UNROLL
            for (int j = 0; j < kOthers / 8; j++) {
                YOKE_UNROLL
                for (int c = 0; c < 2; c++)
                    if (j * 8 + c < from || j * 8 + c >= to)
                        weights_[i / 2][j][i % 2 * 2 + c] = slopes_[i / 2][j][i % 2 * 2 + c] = 0.0f;
            }
        }
    }

    __device__ void finish() const
    {
        const AttentionSizes &s = launch_.sizes;
        YOKE_UNROLL
        for (int i = 0; i < kParts * 2; i++) {
            const int64_t own = row(i / 2, i % 2);
            if (own >= (kOfKeys ? s.keys : s.queries)) continue;
            store_sums<T, kWidth>(
                sums_[i / 2], i % 2, 1.0f,
                kOfKeys ? head_.place.data[kKeyGrad] + own * launch_.d_key.row_step * 2
                        : head_.place.data[kQueryGrad] + own * launch_.d_query.row_step * 2,
                (int)s.width);
            if constexpr (kOfKeys)
                store_sums<T, kWidth>(
                    slope_sums_[i / 2], i % 2, kGeneral ? launch_.params.factor : 1.0f,
                    head_.place.data[kValueGrad] + own * launch_.d_value.row_step * 2,
                    (int)s.value_width);
        }
    }

    const MmaBackwardLaunch &launch_;
    const BackwardHead<Floats> head_;
    const int first_, first_own_, lane_;  // first row of the block, and of the warp
    Products weights_, slopes_;
    MmaSums<kParts, kWidth> sums_;
    std::conditional_t<kOfKeys, MmaSums<kParts, kWidth>, char> slope_sums_;  // only for keys
    float lse_[kOfKeys ? 1 : kParts * 2], dot_[kOfKeys ? 1 : kParts * 2];    // for queries' rows
};

template <class T, int kWidth, bool kOfKeys, bool kGeneral>
__global__ void __launch_bounds__(kMmaThreads, 2)
    differentiate_by_mma(const MmaBackwardLaunch launch, [[maybe_unused]] int blocks)
{
    if constexpr (kHasMma) {
        using Tile = MmaGradientTile<kWidth>;
        YOKE_SHARED(Chunk, own, Tile::kRows * Tile::kChunks);
        YOKE_SHARED(Chunk, own_slopes, Tile::kRows * Tile::kChunks);
        YOKE_SHARED(Chunk, others, Tile::kOthers * Tile::kChunks);
        YOKE_SHARED(Chunk, other_slopes, Tile::kOthers * Tile::kChunks);
        // Under a causal mask late queries meet more keys, and early keys more queries: they begin first.
        const int head = (int)blockIdx.x / blocks, number = (int)blockIdx.x % blocks,
                  block = kOfKeys ? number : blocks - 1 - number;
        MmaGradients<T, kWidth, kOfKeys, kGeneral>(launch, head, block * Tile::kRows)
            .run(own, own_slopes, others, other_slopes);
    }
}

template <class T, int kWidth, bool kOfKeys>
yoke_status start_gradients(const yoke_launch *launch, const BackwardLaunch<Floats> &work)
{
    const int64_t rows = kOfKeys ? work.sizes.keys : work.sizes.queries;
    const int64_t blocks = divide_up(rows, MmaGradientTile<kWidth>::kRows);
    if (blocks == 0) return YOKE_OK;
    const auto kernel = work.has_mask || work.params.drops
                            ? differentiate_by_mma<T, kWidth, kOfKeys, true>
                            : differentiate_by_mma<T, kWidth, kOfKeys, false>;
    return start(launch, kernel, {work.sizes.heads * blocks, kMmaThreads}, MmaBackwardLaunch(work),
                 (int)blocks);
}

// Starts the kernels for a launch whose MmaLack is kNone.
inline yoke_status start_gradients(const yoke_launch *launch, const BackwardLaunch<Floats> &work)
{
    return for_mma(work, [&]<class T, int kWidth>() {
        const yoke_status status = start_gradients<T, kWidth, false>(launch, work);
        return status ? status : start_gradients<T, kWidth, true>(launch, work);
    });
}

YOKE_CUDA_END
