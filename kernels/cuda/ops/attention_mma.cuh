// Attention of halves by tensor cores: a block of 128 queries meets one tile of keys after the other, as in
// attention.cu, with scores and weights in registers from one product to the next (T. Dao, "FlashAttention-2", 2023).
//
// A warp has 32 queries, in two of the tensor cores' tiles of 16 rows, and reads each tile of keys and of values from
// shared memory once for both. Keys are copied there while the weights meet the values, values while the queries meet
// the keys. Weights are powers of two of scores less a row's shift, which need not be the row's greatest score: it
// moves, and the sums with it, only where a score is kSlack beyond it (after M. Zadouri, J. Shah, T. Dao and others,
// "FlashAttention-4", 2026), which spares the tiles after the first ones most of the work on the sums.
#pragma once

#include "kernels/cuda/ops/attention_work.cuh"
#include "kernels/cuda/ops/mma.cuh"

YOKE_CUDA_BEGIN

// Widths of up to kWidth; rows are filled up with zeros. Shared memory holds 48 KiB at most without asking for more.
template <int kWidth>
struct MmaTile {
    static constexpr int kWarps = 4, kThreads = kWarps * kWarp;
    static constexpr int kRows = 16, kParts = 2;  // of a warp's queries
    static constexpr int kWarpQueries = kRows * kParts, kQueries = kWarps * kWarpQueries;
    static constexpr int kKeys = kWidth == 64 ? 64 : 32;
    static constexpr int kChunks = kWidth / 8;  // of a row
    static constexpr int kSteps = kWidth / 16;  // of a product over the width
    static constexpr float kSlack = 8;          // weights stay below 2^kSlack, far from f16's end
};

constexpr int64_t kMmaLongest =
    1 << 30;  // queries of all heads, and keys: with a block more they are ints

struct MmaLaunch : ForwardLaunch<Floats> {
    float exponent;  // what a score is multiplied by to be one of 2

    explicit MmaLaunch(const ForwardLaunch<Floats> &launch)
        : ForwardLaunch<Floats>(launch),
          exponent((float)((double)launch.params.scale * 1.4426950408889634))
    {
    }
};

// A block of queries of one head, seen by one warp lane: it has rows lane / 4 and lane / 4 + 8 of each part of its
// warp's queries, and of each eight columns lane % 4 * 2 and the next one.
template <class T, int kWidth>
class MmaBlock {
    using Tile = MmaTile<kWidth>;
    static constexpr int kParts = Tile::kParts, kKeys = Tile::kKeys, kChunks = Tile::kChunks;
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
        clear();
        const int end = keys_before(first_ + Tile::kQueries),
                  own_end = min(end, keys_before(first_own_ + Tile::kWarpQueries)),
                  whole = min(end, keys_before(first_own_ + 1));
        RowCopies key(head_.key()), value(head_.value());
        if (end > 0) {
            RowCopies query(head_.query(), first_);
            query.template begin<Tile::kQueries>(queries);
            key.template begin<kKeys>(keys);
        }
        for (int k = 0; k < end; k += kKeys) {
            wait_for_copies();
            __syncthreads();  // the keys are there, and the last values are done with
            value.template begin<kKeys>(values);
            if (k < own_end) {
                multiply_keys(queries, keys);
                if (k + kKeys > whole) mask_scores(k, end);
                weigh();
            }
            wait_for_copies();
            __syncthreads();  // the values are there, and the keys are done with
            if (k + kKeys < end) key.template begin<kKeys>(keys);
            if (k < own_end) add_values(values);
        }
        finish();
    }

private:
    __device__ void clear()
    {
        YOKE_UNROLL
        for (int part = 0; part < kParts; part++) {
            YOKE_UNROLL
            for (int i = 0; i < 2; i++) shift_[part][i] = -kernels::kInfinity, sum_[part][i] = 0.0f;
            YOKE_UNROLL
            for (int i = 0; i < kWidth / 8 * 4; i++) result_[part][i / 4][i % 4] = 0.0f;
        }
    }

    // What a thread copies of a head's rows: of every kAtOnce rows one chunk.
    class RowCopies {
    public:
        __device__ explicit RowCopies(const HeadRows<Floats> &rows, int first = 0)
            : step_(rows.step.row_step * (int64_t)sizeof(T)),
              left_(chunk() * 8 < rows.columns ? (int)rows.rows - first - row() : 0)
        {
            next_ = rows.data + (first + row()) * step_ + chunk() * (int)sizeof(Chunk);
        }

        // The next kRows rows; zeros where there are none.
        template <int kRows, class Room>
        __device__ void begin(Room &room)
        {
            const int at = chunk_at<kChunks>(row(), chunk());
            YOKE_UNROLL
            for (int i = 0; i < kRows; i += kAtOnce, next_ += kAtOnce * step_)
                copy_async(room, at + i * kChunks, next_, i < left_);
            left_ -= kRows;
        }

    private:
        static constexpr int kAtOnce = Tile::kThreads / kChunks;
        __device__ static int chunk() { return (int)threadIdx.x % kChunks; }
        __device__ static int row() { return (int)threadIdx.x / kChunks; }

        const char *next_;
        const int64_t step_;
        int left_;
    };

    // Each ldmatrix brings two tiles of eight keys, or a part's queries, over a step of the width.
    template <class Queries, class Room>
    __device__ void multiply_keys(const Queries &queries, const Room &keys)
    {
        YOKE_UNROLL
        for (int i = 0; i < kParts * kKeys / 8 * 4; i++)
            scores_[i / 4 / (kKeys / 8)][i / 4 % (kKeys / 8)][i % 4] = 0.0f;
        const int query = unknown(warp_of_thread() * Tile::kWarpQueries + lane_ % 16);
        const int key = unknown(lane_ % 8 + lane_ / 16 * 8);
        YOKE_UNROLL
        for (int step = 0; step < Tile::kSteps; step++) {
            unsigned of_queries[kParts][4];
            const int at = chunk_at<kChunks>(query, step * 2 + lane_ / 16);
            YOKE_UNROLL
            for (int part = 0; part < kParts; part++)
                load_matrices<false>(queries, at + part * Tile::kRows * kChunks, of_queries[part]);
            const int key_at = chunk_at<kChunks>(key, step * 2 + lane_ / 8 % 2);
            YOKE_UNROLL
            for (int j = 0; j < kKeys / 8; j += 2) {
                unsigned of_keys[4];
                load_matrices<false>(keys, key_at + j * 8 * kChunks, of_keys);
                YOKE_UNROLL
                for (int part = 0; part < kParts; part++) {
                    multiply_add<T>(of_queries[part], of_keys[0], of_keys[1], scores_[part][j]);
                    multiply_add<T>(of_queries[part], of_keys[2], of_keys[3], scores_[part][j + 1]);
                }
            }
        }
    }

    // Lengths fit an int: mma_serves sees to that.
    __device__ int keys_before(int query) const { return (int)head_.keys_before(query); }
    __device__ int row(int part, int i) const
    {
        return first_own_ + part * Tile::kRows + i * 8 + lane_ / 4;
    }

    // Pairs that do not exist or are forbidden get -infinity.
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

    // Scores become weights, and the rows' shifts and sums take them in; sums are of the lane's own columns.
    __device__ void weigh()
    {
        Sums top;
        bool grows = false;
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            const int part = row / 2, i = row % 2;
            top[part][i] = top_of(part, i) * launch_.exponent;
            grows |= top[part][i] > shift_[part][i] + Tile::kSlack;
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
                    score = approximate_exp2(fmaf(score, launch_.exponent, -shift));
                    sum_[part][i] += score;
                }
            }
        }
    }

    // The greatest score of a row, which four neighbouring lanes have; NaN is none.
    __device__ float top_of(int part, int i) const
    {
        float top = -kernels::kInfinity;
        YOKE_UNROLL
        for (int j = 0; j < kKeys / 8; j++)
            top = fmaxf(top, fmaxf(scores_[part][j][i * 2], scores_[part][j][i * 2 + 1]));
        top = fmaxf(top, shuffle_xor(top, 1));
        return fmaxf(top, shuffle_xor(top, 2));
    }

    __device__ void move_shifts(const Sums &top)
    {
        YOKE_UNROLL
        for (int row = 0; row < kParts * 2; row++) {
            const int part = row / 2, i = row % 2;
            const float moved = fmaxf(shift_[part][i], top[part][i]);
            const float factor =
                approximate_exp2(shift_[part][i] - kernels::attention_shift(moved));
            shift_[part][i] = moved;
            sum_[part][i] *= factor;
            YOKE_UNROLL
            for (int j = 0; j < kWidth / 8; j++) {
                result_[part][j][i * 2] *= factor;
                result_[part][j][i * 2 + 1] *= factor;
            }
        }
    }

    // Weights lie as a factor has to: of two tiles of eight keys the lane's columns are those of a step of sixteen.
    template <class Room>
    __device__ void add_values(const Room &values)
    {
        const int value = unknown(lane_ % 16);
        YOKE_UNROLL
        for (int step = 0; step < kKeys / 16; step++) {
            unsigned weights[kParts][4];
            YOKE_UNROLL
            for (int i = 0; i < kParts * 4; i++) {
                const float(&at)[4] = scores_[i / 4][step * 2 + i % 4 / 2];
                weights[i / 4][i % 4] = narrowed_pair<T>(at[i % 2 * 2], at[i % 2 * 2 + 1]);
            }
            YOKE_UNROLL
            for (int j = 0; j < kWidth / 8; j += 2) {
                unsigned of_values[4];
                load_matrices<true>(values,
                                    chunk_at<kChunks>(value, j + lane_ / 16) + step * 16 * kChunks,
                                    of_values);
                YOKE_UNROLL
                for (int part = 0; part < kParts; part++) {
                    multiply_add<T>(weights[part], of_values[0], of_values[1], result_[part][j]);
                    multiply_add<T>(weights[part], of_values[2], of_values[3],
                                    result_[part][j + 1]);
                }
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
        const float factor = kernels::attention_normaliser(sum);
        T *const to = reinterpret_cast<T *>(head_.place.data[kAttended]) +
                      (int64_t)row(part, i) * launch_.out.row_step;
        if (lane_ % 4 == 0)
            launch_.lse[head_.number * launch_.sizes.queries + row(part, i)] =
                kernels::attention_log_sum_exp(shift_[part][i] * kLogOf2, sum);
        YOKE_UNROLL
        for (int j = 0; j < kWidth / 8; j++) {
            if (j * 8 >= launch_.sizes.value_width) break;
            const float pair[2] = {result_[part][j][i * 2] * factor,
                                   result_[part][j][i * 2 + 1] * factor};
            store_pack<2>(to + j * 8 + lane_ % 4 * 2, pack_of<T, 2>(pair));
        }
    }

    const MmaLaunch &launch_;
    const AttentionHead<Floats, kForwardOperands, MmaLaunch> head_;
    const int first_, first_own_, lane_;  // of the block, and of the warp
    float scores_[kParts][kKeys / 8][4], result_[kParts][kWidth / 8][4];
    Sums shift_, sum_;
};

template <class T, int kWidth>
__global__ void __launch_bounds__(MmaTile<kWidth>::kThreads, 2)
    attend_by_mma(const MmaLaunch launch, [[maybe_unused]] int blocks)
{
    if constexpr (kHasMma) {
        using Tile = MmaTile<kWidth>;
        YOKE_SHARED(Chunk, queries, Tile::kQueries * Tile::kChunks);
        YOKE_SHARED(Chunk, keys, Tile::kKeys * Tile::kChunks);
        YOKE_SHARED(Chunk, values, Tile::kKeys * Tile::kChunks);
        // Under a causal mask late queries have more keys: they begin first.
        const int head = (int)blockIdx.x / blocks, block = blocks - 1 - (int)blockIdx.x % blocks;
        MmaBlock<T, kWidth>(launch, head, block * Tile::kQueries).run(queries, keys, values);
    }
}

// ---- the host's side ------------------------------------------------------------------------------------------------

// Whether attend_by_mma serves a launch: halves on a card that has what it takes, widths of whole chunks that lie
// together, and neither a mask nor dropout.
inline bool mma_serves(const yoke_launch *launch, const ForwardLaunch<Floats> &work,
                       const yoke_operand *const (&operands)[kForwardOperands],
                       const Loop<kForwardOperands> &heads)
{
    const auto fits = [](int64_t width) { return width > 0 && width <= 128 && width % 8 == 0; };
    if (work.query.dtype != YOKE_BF16 && work.query.dtype != YOKE_F16) return false;
    if (compiled_for(launch) < kMmaArch || work.has_mask || work.params.drops) return false;
    if (!fits(work.sizes.width) || !fits(work.sizes.value_width)) return false;
    if (max(work.sizes.heads * work.sizes.queries, work.sizes.keys) > kMmaLongest) return false;
    // The greatest score is to have the greatest weight, and stay the greatest when multiplied.
    if (!(work.params.scale > 0 && work.params.scale < kernels::kInfinity)) return false;
    for (const int i : {kQuery, kKey, kValue, kAttended})
        if (!AttentionRows(*operands[i], heads, i, (int)sizeof(Chunk) / 2).packed) return false;
    return true;
}

template <class T, int kWidth>
yoke_status start_mma(const yoke_launch *launch, const ForwardLaunch<Floats> &work)
{
    using Tile = MmaTile<kWidth>;
    const int64_t blocks = divide_up(work.sizes.queries, Tile::kQueries);
    return start(launch, attend_by_mma<T, kWidth>, {work.sizes.heads * blocks, Tile::kThreads},
                 MmaLaunch(work), (int)blocks);
}

template <class T>
yoke_status start_mma(const yoke_launch *launch, const ForwardLaunch<Floats> &work)
{
    return max(work.sizes.width, work.sizes.value_width) <= 64 ? start_mma<T, 64>(launch, work)
                                                               : start_mma<T, 128>(launch, work);
}

YOKE_CUDA_END
