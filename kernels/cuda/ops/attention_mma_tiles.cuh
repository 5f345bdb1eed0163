// Common parts of attention's kernels over tensor cores, forward and backward: tiles of rows in shared memory, and
// products of tiles by a warp. Sums stay in the lanes' registers.
//
// A block is four warps. A warp has kParts times sixteen rows of a product. In each part, lane l has rows l / 4 and l
// / 4 + 8. Of each eight columns, it has l % 4 * 2 and the next column.
#pragma once

#include <initializer_list>

#include "kernels/cuda/ops/approximate.cuh"
#include "kernels/cuda/ops/attention_work.cuh"
#include "kernels/cuda/ops/mma.cuh"

YOKE_CUDA_BEGIN

constexpr int kMmaWarps = 4, kMmaThreads = kMmaWarps * kWarp;
constexpr int kMmaRows = 16;  // rows of a part
constexpr int64_t kMmaLongest =
    1 << 30;  // queries of all heads, and keys: with a block more they are ints
constexpr double kMmaExponent =
    1.4426950408889634;  // log2(e): powers of two are what the device has

template <int kParts, int kColumns>
using MmaSums = float[kParts][kColumns / 8][4];

template <int kParts, int kColumns>
__device__ inline void clear(MmaSums<kParts, kColumns> &sums)
{
    YOKE_UNROLL
    for (int i = 0; i < kParts * kColumns / 2; i++)
        sums[i / 4 / (kColumns / 8)][i / 4 % (kColumns / 8)][i % 4] = 0.0f;
}

// Copies of a head's rows of halves by a thread: a chunk of every kAtOnce rows.
template <int kChunks>
class RowCopies {
public:
    __device__ explicit RowCopies(const HeadRows<Floats> &rows, int first = 0)
        : step_(rows.step.row_step * 2),
          left_(chunk() * 8 < rows.columns ? (int)rows.rows - first - row() : 0)
    {
        next_ = rows.data + (first + row()) * step_ + chunk() * (int)sizeof(Chunk);
    }

    // Begins to copy the next kRows rows into `room`. Missing rows become zeros.
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
    static constexpr int kAtOnce = kMmaThreads / kChunks;
    __device__ static int chunk() { return (int)threadIdx.x % kChunks; }
    __device__ static int row() { return (int)threadIdx.x / kChunks; }

    const char *next_;
    const int64_t step_;
    int left_;
};

// Computes sums = the warp's rows of `own`, from `first` on, times the rows of `other`, over the width. Each ldmatrix
// loads a part's rows, or sixteen of the other rows, over a step of the width.
template <class T, int kWidth, int kParts, int kColumns, class Own, class Other>
__device__ inline void multiply_rows(const Own &own, int first, const Other &other,
                                     MmaSums<kParts, kColumns> &sums)
{
    constexpr int kChunks = kWidth / 8;
    clear<kParts, kColumns>(sums);
    const int lane = place_in_warp();
    const int own_row = unknown(first + lane % 16), other_row = unknown(lane % 8 + lane / 16 * 8);
    YOKE_UNROLL
    for (int step = 0; step < kWidth / 16; step++) {
        unsigned of_own[kParts][4];
        const int own_at = chunk_at<kChunks>(own_row, step * 2 + lane / 16),
                  other_at = chunk_at<kChunks>(other_row, step * 2 + lane / 8 % 2);
        YOKE_UNROLL
        for (int part = 0; part < kParts; part++)
            load_matrices<false>(own, own_at + part * kMmaRows * kChunks, of_own[part]);
        YOKE_UNROLL
        for (int j = 0; j < kColumns / 8; j += 2) {
            unsigned of_other[4];
            load_matrices<false>(other, other_at + j * 8 * kChunks, of_other);
            YOKE_UNROLL
            for (int part = 0; part < kParts; part++) {
                multiply_add<T>(of_own[part], of_other[0], of_other[1], sums[part][j]);
                multiply_add<T>(of_own[part], of_other[2], of_other[3], sums[part][j + 1]);
            }
        }
    }
}

// Adds factors, rounded to T, times the kRows rows of `other` to sums. Factors need no exchange between lanes: a
// lane's columns in two tiles of eight are its columns in a step of sixteen.
template <class T, int kWidth, int kParts, int kRows, class Other>
__device__ inline void add_product(const MmaSums<kParts, kRows> &factors, const Other &other,
                                   MmaSums<kParts, kWidth> &sums)
{
    constexpr int kChunks = kWidth / 8;
    const int lane = place_in_warp(), row = unknown(lane % 16);
    YOKE_UNROLL
    for (int step = 0; step < kRows / 16; step++) {
        unsigned own[kParts][4];
        YOKE_UNROLL
        for (int i = 0; i < kParts * 4; i++) {
            const float(&at)[4] = factors[i / 4][step * 2 + i % 4 / 2];
            own[i / 4][i % 4] = narrowed_pair<T>(at[i % 2 * 2], at[i % 2 * 2 + 1]);
        }
        YOKE_UNROLL
        for (int j = 0; j < kWidth / 8; j += 2) {
            unsigned of_other[4];
            load_matrices<true>(other, chunk_at<kChunks>(row, j + lane / 16) + step * 16 * kChunks,
                                of_other);
            YOKE_UNROLL
            for (int part = 0; part < kParts; part++) {
                multiply_add<T>(own[part], of_other[0], of_other[1], sums[part][j]);
                multiply_add<T>(own[part], of_other[2], of_other[3], sums[part][j + 1]);
            }
        }
    }
}

// ---- infinite and NaN elements --------------------------------------------------------------------------------------
//
// If pairs are forbidden, a factor of 0 times any element must give 0. So tiles with forbidden pairs, which are few,
// are searched before their product. Infinity and NaN are strays: a sum with a stray becomes NaN, and the stray
// becomes 0.

template <class T>
constexpr unsigned kEndOfHalves = std::is_same_v<T, bf16> ? 0x7f80 : 0x7c00;  // infinity's bits

template <class T>
__device__ inline bool is_stray_half(unsigned half)
{
    return (half & kEndOfHalves<T>) == kEndOfHalves<T>;
}

// Returns a pair of halves with 1 where `pair` has strays, and 0 elsewhere.
template <class T>
__device__ inline unsigned marks_of(unsigned pair)
{
    constexpr unsigned kOne = std::is_same_v<T, bf16> ? 0x3f80 : 0x3c00;
    return (is_stray_half<T>(pair) ? kOne : 0) | (is_stray_half<T>(pair >> 16) ? kOne << 16 : 0);
}

// Returns 0 if a chunk has no strays. A stray's exponent plus 1 reaches the half's highest bit.
template <class T>
__device__ inline unsigned strays_of(const Chunk &chunk)
{
    constexpr unsigned kEnds = kEndOfHalves<T> * 0x10001, kUnits = kEnds & ~(kEnds << 1);
    unsigned pairs[4], found = 0;
    memcpy(pairs, chunk.at, sizeof pairs);
    YOKE_UNROLL
    for (int k = 0; k < 4; k++) found |= (pairs[k] & kEnds) + kUnits;
    return found & 0x80008000u;
}

// Adds the products of factors and strays, each as 0 or 1, for the sums of 16 columns, from number j * 8 on.
template <class T, int kWidth, int kRows, class Other>
__device__ inline void add_meetings(const float (&factors)[kRows / 8][4], const Other &other, int j,
                                    float (&met)[2][4])
{
    constexpr int kChunks = kWidth / 8;
    const int lane = place_in_warp();
    YOKE_UNROLL
    for (int step = 0; step < kRows / 16; step++) {
        unsigned pairs[4], meets[4];
        load_matrices<true>(other, chunk_at<kChunks>(lane % 16 + step * 16, j + lane / 16), pairs);
        YOKE_UNROLL
        for (int k = 0; k < 4; k++) {
            const float(&at)[4] = factors[step * 2 + k / 2];
            meets[k] = narrowed_pair<T>(at[k % 2 * 2] != 0.0f, at[k % 2 * 2 + 1] != 0.0f);
            pairs[k] = marks_of<T>(pairs[k]);
        }
        YOKE_UNROLL
        for (int half = 0; half < 2; half++)
            multiply_add<T>(meets, pairs[half * 2], pairs[half * 2 + 1], met[half]);
    }
}

// Makes NaN of each sum of which a factor other than 0 meets a stray. Strays are rare, so the code is a loop, which
// collects a bit for each sum.
template <class T, int kWidth, int kParts, int kRows, class Other>
__device__ inline void mark_met(const MmaSums<kParts, kRows> &factors, const Other &other,
                                MmaSums<kParts, kWidth> &sums)
{
    YOKE_UNROLL
    for (int part = 0; part < kParts; part++) {
        uint64_t found = 0;
        YOKE_NO_UNROLL
        for (int j = 0; j < kWidth / 8; j += 2) {
            float met[2][4] = {};
            add_meetings<T, kWidth, kRows>(factors[part], other, j, met);
            YOKE_UNROLL
            for (int k = 0; k < 8; k++)
                found |= (uint64_t)(met[k / 4][k % 4] != 0.0f) << (j * 4 + k);
        }
        YOKE_UNROLL
        for (int j = 0; j < kWidth / 8; j++) {
            YOKE_UNROLL
            for (int k = 0; k < 4; k++)
                if (found >> (j * 4 + k) & 1) sums[part][j][k] = __builtin_nanf("");
        }
    }
}

// Removes the strays from a tile of kRows rows. If `meets`, this warp's factors may use strays of the tile: first
// makes NaN of the sums that use a stray. All threads of a block call this, after all have finished with the
// unchanged tile.
template <class T, int kWidth, int kParts, int kRows, class Room>
__device__ inline void take_strays(const MmaSums<kParts, kRows> &factors, Room &room, bool meets,
                                   MmaSums<kParts, kWidth> &sums)
{
    constexpr int kChunks = kRows * kWidth / 8;
    unsigned found = 0;
    for (int i = (int)threadIdx.x; i < kChunks; i += kMmaThreads) found |= strays_of<T>(room[i]);
    if (!__syncthreads_or(found != 0)) return;
    if (meets) mark_met<T, kWidth, kParts, kRows>(factors, room, sums);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < kChunks; i += kMmaThreads) {
        Chunk chunk = room[i];
        YOKE_UNROLL
        for (int k = 0; k < 8; k++)
            if (is_stray_half<T>(chunk.at[k])) chunk.at[k] = 0;
        room[i] = chunk;
    }
    __syncthreads();
}

// Stores row l / 4 of a part, or with i = 1 row l / 4 + 8, times `factor`, to `columns` columns at `to`.
template <class T, int kWidth>
__device__ inline void store_sums(const float (&sums)[kWidth / 8][4], int i, float factor, char *to,
                                  int columns)
{
    unsigned *const pairs = reinterpret_cast<unsigned *>(to) + place_in_warp() % 4;
    YOKE_UNROLL
    for (int j = 0; j < kWidth / 8; j++) {
        const Pack<unsigned, 1> pair{
            narrowed_pair<T>(sums[j][i * 2] * factor, sums[j][i * 2 + 1] * factor)};
        if (j * 8 < columns) store_pack<1>(pairs + j * 4, pair);
    }
}

// ---- the host's side ------------------------------------------------------------------------------------------------

// Reason why tensor cores do not serve a launch.
enum class MmaLack {
    kNone,    // nothing: they serve it
    kDtype,   // operands that are not halves, or an additive mask of another dtype
    kCard,    // a card without the instructions
    kWidth,   // a width above 128, or not in whole chunks
    kLength,  // more rows than an int counts
    kLayout,  // rows of an operand that are not dense, or not at multiples of 16 bytes
};

// Returns what keeps tensor cores from a launch, as the first lack found. `which` are the operands read or written in
// rows.
template <int N>
inline MmaLack mma_lack(const yoke_launch *launch, const AttentionWork<Floats, N> &work,
                        const yoke_operand *const (&operands)[N], const Loop<N> &heads,
                        std::initializer_list<int> which)
{
    const auto fits = [](int64_t width) { return width > 0 && width <= 128 && width % 8 == 0; };
    if (work.query.dtype != YOKE_BF16 && work.query.dtype != YOKE_F16) return MmaLack::kDtype;
    if (work.has_mask && !work.bool_mask && work.mask.dtype != work.query.dtype)
        return MmaLack::kDtype;
    if (compiled_for(launch) < kMmaArch) return MmaLack::kCard;
    if (!fits(work.sizes.width) || !fits(work.sizes.value_width)) return MmaLack::kWidth;
    if (work.sizes.heads * max(work.sizes.queries, work.sizes.keys) > kMmaLongest)
        return MmaLack::kLength;
    for (const int i : which)
        if (!AttentionRows(*operands[i], heads, i, (int)sizeof(Chunk) / 2).packed)
            return MmaLack::kLayout;
    return MmaLack::kNone;
}

// Calls f.operator()<T, kWidth>() with the halves and the width of a launch whose MmaLack is kNone.
template <int N, class F>
inline yoke_status for_mma(const AttentionWork<Floats, N> &work, const F &f)
{
    const bool narrow = max(work.sizes.width, work.sizes.value_width) <= 64;
    if (work.query.dtype == YOKE_BF16)
        return narrow ? f.template operator()<bf16, 64>() : f.template operator()<bf16, 128>();
    return narrow ? f.template operator()<f16, 64>() : f.template operator()<f16, 128>();
}

YOKE_CUDA_END
