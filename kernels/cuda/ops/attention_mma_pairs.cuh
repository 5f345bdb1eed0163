// Masks and dropout of attention over tensor cores: the scores of a warp's tile of pairs, and the pairs that dropout
// keeps.
//
// A lane has the elements of a tile that attention_mma_tiles.cuh names. Rows are queries and columns are keys, or with
// kOfKeys the other way round.
#pragma once

#include "kernels/cuda/ops/attention_mma_tiles.cuh"

YOKE_CUDA_BEGIN

// ---- scores ---------------------------------------------------------------------------------------------------------

// Terms of the mask for a lane's row, from a query and a key on: none.
struct NoTerms {
    template <class Head>
    __device__ NoTerms(const Head &, int64_t, int64_t, bool)
    {
    }
    __device__ void read(int, int, int, float (&terms)[2]) const { terms[0] = terms[1] = 0.0f; }
};

// Terms of a packed mask of halves, if the number of keys is even: two neighbouring keys are read at once.
template <class T>
class PackedTerms {
public:
    template <class Head>
    __device__ PackedTerms(const Head &head, int64_t query, int64_t key, bool)
        : from_(reinterpret_cast<const T *>(head.place.data[kMask]) +
                query * head.launch.mask.row_step + key)
    {
    }
    __device__ void read(int j, int, int end, float (&terms)[2]) const
    {
        Pack<T, 2> pair = {};
        if (j * 8 < end) pair = load_pack<2>(from_ + j * 8);
        unpack<T, 2>(pair, terms);
    }

private:
    const T *from_;
};

// Terms of any mask, in halves or bools.
template <class T>
class AnyTerms {
public:
    template <class Head>
    __device__ AnyTerms(const Head &head, int64_t query, int64_t key, bool along_keys)
        : step_((int64_t)head.launch.mask.size *
                (along_keys ? head.launch.mask.column_step : head.launch.mask.row_step)),
          is_bool_(head.launch.bool_mask)
    {
        const AttentionRows &mask = head.launch.mask;
        from_ =
            head.place.data[kMask] + (query * mask.row_step + key * mask.column_step) * mask.size;
    }
    // Reads the terms of columns j * 8 and j * 8 + 1. Columns before `first` or from `end` on do not exist.
    __device__ void read(int j, int first, int end, float (&terms)[2]) const
    {
        YOKE_UNROLL
        for (int c = 0; c < 2; c++) {
            const int n = j * 8 + c;
            const char *const at = from_ + n * step_;
            T term = {};
            if (n >= first && n < end) {
                if (is_bool_)
                    term.bits = load(*reinterpret_cast<const bool8 *>(at)) ? 0 : kForbidden;
                else
                    term = *reinterpret_cast<const T *>(at);
            }
            terms[c] = widen<T>(term);
        }
    }

private:
    static constexpr uint16_t kForbidden = kEndOfHalves<T> | 0x8000;  // -infinity
    const char *from_;
    const int64_t step_;
    const bool is_bool_;
};

// Turns products of queries and keys into scores: times `scale`, plus the terms of the mask. Scores of pairs that are
// missing or forbidden become -infinity. The tile's pairs are those from first_row and first_column on.
template <class Terms, bool kOfKeys, int kParts, int kColumns, class Head>
__device__ inline void find_scores_with(const Head &head, int first_row, int first_column,
                                        float scale, MmaSums<kParts, kColumns> &scores)
{
    const int lane = place_in_warp(), column = first_column + lane % 4 * 2;
    YOKE_UNROLL
    for (int r = 0; r < kParts * 2; r++) {
        const int row = first_row + r * 8 + lane / 4;
        const bool exists = row < (kOfKeys ? head.launch.sizes.keys : head.launch.sizes.queries);
        const int first = kOfKeys ? (int)head.first_query(row) - column : 0;
        const int end = !exists   ? 0
                        : kOfKeys ? (int)head.launch.sizes.queries - column
                                  : (int)head.keys_before(row + 1) - column;
        const Terms terms(head, kOfKeys ? column : row, kOfKeys ? row : column, !kOfKeys);
        YOKE_UNROLL
        for (int j = 0; j < kColumns / 8; j++) {
            float term[2];
            terms.read(j, first, end, term);
            YOKE_UNROLL
            for (int c = 0; c < 2; c++) {
                float &score = scores[r / 2][j][r % 2 * 2 + c];
                const int n = j * 8 + c;
                score = n >= first && n < end ? kernels::attention_masked(score * scale, term[c])
                                              : -kernels::kInfinity;
            }
        }
    }
}

// Does this for the launch's mask, if there is a mask.
template <class T, bool kOfKeys, int kParts, int kColumns, class Head>
__device__ inline void find_scores(const Head &head, int first_row, int first_column, float scale,
                                   MmaSums<kParts, kColumns> &scores)
{
    const auto with = [&]<class Terms>() {
        find_scores_with<Terms, kOfKeys, kParts, kColumns>(head, first_row, first_column, scale,
                                                           scores);
    };
    const auto &launch = head.launch;
    if (!launch.has_mask) return with.template operator()<NoTerms>();
    if constexpr (!kOfKeys)
        if (launch.mask.packed && !launch.bool_mask && launch.sizes.keys % 2 == 0)
            return with.template operator()<PackedTerms<T>>();
    with.template operator()<AnyTerms<T>>();
}

// Returns the probability of a score, 0 for a forbidden pair. The difference is formed before it becomes an exponent
// of 2, because a mask may hold the least number of its dtype.
__device__ inline float probability_of(float score, float log_sum_exp)
{
    return score == -kernels::kInfinity ? 0.0f
                                        : fast_exp2((score - log_sum_exp) * (float)kMmaExponent);
}

// ---- dropout --------------------------------------------------------------------------------------------------------

// Pairs of a tile that dropout keeps; all, if the launch has no dropout. A draw serves four neighbouring queries of a
// key (kernels/common/attention.h). So sixteen rows and eight columns have 32 draws, one for each lane, which then
// exchange the bits. All lanes of a warp construct this together.
template <bool kOfKeys, int kParts, int kColumns>
class KeptPairs {
    static constexpr int kTiles = kParts * kColumns / 8, kOfWord = 8;  // a lane has 4 bits of each
    static constexpr int kWords = (kTiles + kOfWord - 1) / kOfWord;

public:
    template <class Head>
    __device__ KeptPairs(const Head &head, int first_row, int first_column)
    {
        YOKE_UNROLL
        for (int w = 0; w < kWords; w++) {
            YOKE_UNROLL
            for (int i = 0; i < kSources; i++) bits_[w][i] = ~0u;
            if (!head.launch.params.drops) continue;
            const unsigned mine = draw(head, first_row, first_column, w * kOfWord);
            YOKE_UNROLL
            for (int i = 0; i < kSources; i++)
                bits_[w][i] = __shfl_sync(kWholeWarp, mine, source(i)) >> first_bit();
        }
    }

    // Returns whether the lane's element of row i (0 or 1) of a part, column j * 8 + c, is kept.
    __device__ bool keeps(int part, int i, int j, int c) const
    {
        const int tile = part * (kColumns / 8) + j;
        const unsigned bits = bits_[tile / kOfWord][kOfKeys ? i : i * 2 + c];
        return bits >> (tile % kOfWord * 4 + (kOfKeys ? c : 0)) & 1;
    }

private:
    static constexpr int kSources = kOfKeys ? 2 : 4;

    // Draws for the tiles from number `tile` on, in whose 16 rows and 8 columns the lane has a key and four queries.
    template <class Head>
    __device__ static unsigned draw(const Head &head, int first_row, int first_column, int tile)
    {
        const auto &params = head.launch.params;
        const AttentionSizes &s = head.launch.sizes;
        const int lane = place_in_warp();
        const int64_t key = kOfKeys ? first_row + lane % 16 : first_column + lane % 8,
                      query = kOfKeys ? first_column + lane / 16 * 4 : first_row + lane / 8 * 4;
        const auto counter = [&](int64_t of_head, int64_t k, int64_t q) {
            return (uint64_t)(kernels::attention_draw(of_head, k, q, s.keys, s.queries) /
                              kernels::Keep::kDraws);
        };
        const uint64_t first = params.draw.first() + counter(head.number, key, query),
                       of_key = counter(0, 1, 0);
        unsigned word = 0;
        YOKE_UNROLL_BY(2)
        for (int t = 0; t < kOfWord && tile + t < kTiles; t++) {
            const int part = (tile + t) / (kColumns / 8), j = (tile + t) % (kColumns / 8);
            const uint64_t at = kOfKeys ? first + part * 16 * of_key + (uint64_t)(j * 2)
                                        : first + (uint64_t)(j * 8) * of_key + (uint64_t)(part * 4);
            bool kept[kernels::Keep::kDraws];
            params.keep(kernels::random_block(params.draw.seed, at), kept);
            YOKE_UNROLL
            for (int k = 0; k < kernels::Keep::kDraws; k++)
                word |= (unsigned)kept[k] << (t * kernels::Keep::kDraws + k);
        }
        return word;
    }

    // Returns the lane that draws for this lane's row i of a part, or for its element i / 2, i % 2.
    __device__ static int source(int i)
    {
        const int lane = place_in_warp();
        return kOfKeys ? lane % 4 / 2 * 16 + i * 8 + lane / 4
                       : (i / 2 * 2 + lane / 16) * 8 + lane % 4 * 2 + i % 2;
    }
    // Returns the place of this lane's first query among the four queries of a draw.
    __device__ static int first_bit()
    {
        return kOfKeys ? place_in_warp() % 2 * 2 : place_in_warp() / 4 % 4;
    }

    unsigned bits_[kWords][kSources];
};

YOKE_CUDA_END
