// Attention of halves by tensor cores. As in attention.cu, a block of 128 queries takes the tiles of keys in turn.
// Scores and weights stay in registers between the products (T. Dao, "FlashAttention-2", 2023).
//
// A warp has 32 queries, in two of the tensor cores' tiles of 16 rows. It reads each tile of keys and of values from
// shared memory once for both. Keys are copied to shared memory during the product with values, and values during the
// product with keys. Weights are powers of two of scores less a row's shift. The shift need not be the row's greatest
// score: it moves, and the sums with it, only if a score exceeds it by kSlack (after M. Zadouri, J. Shah, T. Dao and
// others, "FlashAttention-4", 2026). So tiles after the first tiles need little work on the sums.
//
// Launches with a mask, with dropout, or with a scale of 0 or less have kernels of their own (kGeneral). There, shifts
// are scores. Else they are exponents of 2, and a score's factor is part of the subtraction.
#pragma once

#include "kernels/cuda/ops/attention_mma_pairs.cuh"

YOKE_CUDA_BEGIN

// Widths of up to kWidth; rows are filled up with zeros. Shared memory holds 48 KiB at most without asking for more.
template <int kWidth>
struct MmaTile {
    static constexpr int kParts = 2;
    static constexpr int kWarpQueries = kMmaRows * kParts, kQueries = kMmaWarps * kWarpQueries;
    static constexpr int kKeys = kWidth == 64 ? 64 : 32;
    static constexpr int kChunks = kWidth / 8;  // chunks of a row
    static constexpr float kSlack = 8;          // weights stay below e^kSlack, far from f16's end
};

struct MmaLaunch : ForwardLaunch<Floats> {
    float exponent;  // turns a score into an exponent of 2

    explicit MmaLaunch(const ForwardLaunch<Floats> &launch)
        : ForwardLaunch<Floats>(launch), exponent((float)(launch.params.scale * kMmaExponent))
    {
    }
};

// Block of queries of a head, as seen by a warp lane.
template <class T, int kWidth, bool kGeneral>
class MmaBlock {
    using Tile = MmaTile<kWidth>;
    static constexpr int kParts = Tile::kParts, kKeys = Tile::kKeys;
    using Copies = RowCopies<Tile::kChunks>;
    using Sums = float[kParts][2];

public:
    __device__ MmaBlock(const MmaLaunch &launch, int64_t head, int first)
        : launch_(launch),
          head_(launch, head),
          first_(first),
          first_own_(first + warp_of_thread() * Tile::kWarpQueries),
          lane_(place_in_warp())
    {
    }

    template <class Queries, class Room>
    __device__ void run(Queries &queries, Room &keys, Room &values)
    {
        begin();
        const int end = keys_before(first_ + Tile::kQueries),
                  own_end = min(end, keys_before(first_own_ + Tile::kWarpQueries)),
                  whole = min(end, keys_before(first_ + 1));  // seen by all rows
        Copies key(head_.key()), value(head_.value());
        if (end > 0) {
            Copies query(head_.query(), first_);
            query.template begin<Tile::kQueries>(queries);
            key.template begin<kKeys>(keys);
        }
        for (int k = 0; k < end; k += kKeys) {
            wait_for_copies();
            __syncthreads();  // the keys are there, and the last values are done with
            value.template begin<kKeys>(values);
            if (k < own_end) {
                multiply_rows<T, kWidth, kParts, kKeys>(
                    queries, warp_of_thread() * Tile::kWarpQueries, keys, scores_);
                if constexpr (kGeneral)
                    find_scores<T, false, kParts, kKeys>(head_, first_own_, k, launch_.params.scale,
                                                         scores_);
                else if (k + kKeys > whole)
                    mask_scores(k, end);
                weigh();
                if (kGeneral && launch_.params.drops) drop(k);
            }
            wait_for_copies();
            __syncthreads();  // the values are there, and the keys are done with
            if (k + kKeys < end) key.template begin<kKeys>(keys);
            if (k + kKeys > whole || (kGeneral && launch_.has_mask))
                take_strays<T, kWidth, kParts, kKeys>(scores_, values, k < own_end, result_);
            if (k < own_end) add_product<T, kWidth, kParts, kKeys>(scores_, values, result_);
        }
        finish();
    }

private:
    __device__ void begin()
    {
        clear<kParts, kWidth>(result_);
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++)
            shift_[row / 2][row % 2] = -kernels::kInfinity, sum_[row / 2][row % 2] = 0.0f;
    }

    // Returns the number of keys that queries before `query` see. Lengths fit an int, because mma_lack checks them.
    __device__ int keys_before(int query) const { return (int)head_.keys_before(query); }
    __device__ int row(int part, int i) const
    {
        return first_own_ + part * kMmaRows + i * 8 + lane_ / 4;
    }

    // Sets the scores of pairs that do not exist or are forbidden to -infinity.
    __device__ void mask_scores(int k, int end)
    {
        YOKE_UNROLL
        for (int part = 0; part < kParts; part++) {
            YOKE_UNROLL
            for (int i = 0; i < 2; i++) {
                const int met = min(end, keys_before(row(part, i) + 1)) - k;
                const int allowed = met - lane_ % 4 * 2;
                YOKE_UNROLL
                for (int j = 0; j < kKeys / 8; j++) {
                    YOKE_UNROLL
                    for (int c = 0; c < 2; c++)
                        if (j * 8 + c >= allowed) scores_[part][j][i * 2 + c] = -kernels::kInfinity;
                }
            }
        }
    }

    // Turns scores into weights, and updates the rows' shifts and sums. A sum covers the lane's own columns.
    __device__ void weigh()
    {
        Sums top;
        bool grows = false;
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            const int part = row / 2, i = row % 2;
            top[part][i] = top_of(part, i) * (kGeneral ? 1.0f : launch_.exponent);
            grows |= exceeds(top[part][i], shift_[part][i]);
        }
        if (__any_sync(kWholeWarp, grows)) move_shifts(top);
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            const int part = row / 2, i = row % 2;
            const float shift = kernels::attention_shift(shift_[part][i]);
            YOKE_UNROLL
            for (int j = 0; j < kKeys / 8; j++) {
                YOKE_UNROLL
                for (int c = i * 2; c < i * 2 + 2; c++) {
                    float &score = scores_[part][j][c];
                    score = kGeneral ? power_of(score - shift)
                                     : fast_exp2(fmaf(score, launch_.exponent, -shift));
                    sum_[part][i] += score;
                }
            }
        }
    }

    // Returns the greatest score of a row, distributed over four neighbouring lanes; NaN is ignored.
    __device__ float top_of(int part, int i) const
    {
        float top = -kernels::kInfinity;
        YOKE_UNROLL
        for (int j = 0; j < kKeys / 8; j++)
            top = fmaxf(top, fmaxf(scores_[part][j][i * 2], scores_[part][j][i * 2 + 1]));
        top = fmaxf(top, shuffle_xor(top, 1));
        return fmaxf(top, shuffle_xor(top, 2));
    }

    // Returns whether a row's shift must move. A row's bits do not depend on other rows.
    __device__ static bool exceeds(float top, float shift) { return top > shift + Tile::kSlack; }

    __device__ void move_shifts(const Sums &top)
    {
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            const int part = row / 2, i = row % 2;
            const float moved =
                exceeds(top[part][i], shift_[part][i]) ? top[part][i] : shift_[part][i];
            const float factor = power_of(shift_[part][i] - kernels::attention_shift(moved));
            shift_[part][i] = moved;
            sum_[part][i] *= factor;
            YOKE_UNROLL
            for (int j = 0; j < kWidth / 8; j++) {
                result_[part][j][i * 2] *= factor;
                result_[part][j][i * 2 + 1] *= factor;
            }
        }
    }

    // Returns the power of e, or of 2 if shifts are exponents of 2.
    __device__ static float power_of(float x)
    {
        return fast_exp2(kGeneral ? x * (float)kMmaExponent : x);
    }

    // Makes 0 of the weights that dropout drops. The sums have them; finish has the factor of the others.
    __device__ void drop(int k)
    {
        const KeptPairs<false, kParts, kKeys> kept(head_, first_own_, k);
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            YOKE_UNROLL
            for (int j = 0; j < kKeys / 8; j++) {
                YOKE_UNROLL
                for (int c = 0; c < 2; c++)
                    if (!kept.keeps(row / 2, row % 2, j, c))
                        scores_[row / 2][j][row % 2 * 2 + c] = 0.0f;
            }
        }
    }

    __device__ void finish()
    {
        YOKE_UNROLL
        for (int part = 0; part < kParts; part++) {
            YOKE_UNROLL
            for (int i = 0; i < 2; i++) {
                float sum = sum_[part][i];
                sum += shuffle_xor(sum, 1);
                sum += shuffle_xor(sum, 2);
                if (row(part, i) < launch_.sizes.queries) store_row(part, i, sum);
            }
        }
    }

    __device__ void store_row(int part, int i, float sum) const
    {
        constexpr float kLogOf2 = 0.693147181f;
        const float factor =
            kernels::attention_normaliser(sum) * (kGeneral ? launch_.params.factor : 1.0f);
        if (lane_ % 4 == 0)
            launch_.lse[head_.number * launch_.sizes.queries + row(part, i)] =
                kernels::attention_log_sum_exp(shift_[part][i] * (kGeneral ? 1.0f : kLogOf2), sum);
        store_sums<T, kWidth>(result_[part], i, factor,
                              head_.place.data[kAttended] + row(part, i) * launch_.out.row_step * 2,
                              (int)launch_.sizes.value_width);
    }

    const MmaLaunch &launch_;
    const AttentionHead<Floats, kForwardOperands, MmaLaunch> head_;
    const int first_, first_own_, lane_;  // first query of the block, and of the warp
    MmaSums<kParts, kKeys> scores_;
    MmaSums<kParts, kWidth> result_;
    Sums shift_, sum_;
};

template <class T, int kWidth, bool kGeneral>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attend_by_mma(const MmaLaunch launch, [[maybe_unused]] int blocks)
{
    if constexpr (kHasMma) {
        using Tile = MmaTile<kWidth>;
        YOKE_SHARED(Chunk, queries, Tile::kQueries * Tile::kChunks);
        YOKE_SHARED(Chunk, keys, Tile::kKeys * Tile::kChunks);
        YOKE_SHARED(Chunk, values, Tile::kKeys * Tile::kChunks);
        // Under a causal mask late queries have more keys: they begin first.
        const int head = (int)blockIdx.x / blocks, block = blocks - 1 - (int)blockIdx.x % blocks;
        MmaBlock<T, kWidth, kGeneral>(launch, head, block * Tile::kQueries)
            .run(queries, keys, values);
    }
}

template <class T, int kWidth, bool kGeneral>
inline yoke_status start_mma(const yoke_launch *launch, const ForwardLaunch<Floats> &work)
{
    const int64_t blocks = divide_up(work.sizes.queries, MmaTile<kWidth>::kQueries);
    return start(launch, attend_by_mma<T, kWidth, kGeneral>,
                 {work.sizes.heads * blocks, kMmaThreads}, MmaLaunch(work), (int)blocks);
}

// Starts a kernel for a launch whose MmaLack is kNone.
inline yoke_status start_mma(const yoke_launch *launch, const ForwardLaunch<Floats> &work)
{
    // The greatest product of a query and a key is the greatest score only if the scale is above 0.
    const bool general = work.has_mask || work.params.drops || !(work.params.scale > 0);
    return for_mma(work, [&]<class T, int kWidth>() {
        return general ? start_mma<T, kWidth, true>(launch, work)
                       : start_mma<T, kWidth, false>(launch, work);
    });
}

YOKE_CUDA_END
