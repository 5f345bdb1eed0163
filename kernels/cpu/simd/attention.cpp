// Attention in tiles: a block of queries meets one block of keys after the other, and no matrix of scores is ever
// stored.
//
// Scores are computed transposed, so the columns of a vector are queries. A row's maximum and sum are then plain
// vector operations. Keys and values enter the products as they lie in memory. Only the block of queries is
// transposed, once.
#include "kernels/cpu/simd/attention.h"

YOKE_SIMD_BEGIN

constexpr int64_t kQueryBlock = 128;  // a multiple of every kWidth

namespace {

// Memory of a thread. The comment of each part gives its rows and columns.
template <class C>
struct ForwardRoom {
    int64_t width, value_width;  // padded to whole panels
    C *queries;                  // width x kQueryBlock: transposed, scaled
    C *result;                   // value_width x kQueryBlock: transposed, not yet normalised
    C *keys;                     // kKeyBlock (and a panel) x width
    C *values;                   // kKeyBlock x value_width
    C *scores;                   // kKeyBlock (and a panel) x kWidth: transposed
    C *max, *sum;                // sizes: kQueryBlock
    int64_t size;

    ForwardRoom(const AttentionSizes &s, C *room)
        : width(round_up(s.width, kRows)), value_width(round_up(s.value_width, kRows))
    {
        Dealer<C> dealer{room};
        queries = dealer.take(width * kQueryBlock);
        result = dealer.take(value_width * kQueryBlock);
        keys = dealer.take((kKeyBlock + kRows) * max_width());
        values = dealer.take(kKeyBlock * value_width);
        scores = dealer.take((kKeyBlock + kRows) * kWidth<C>);
        max = dealer.take(kQueryBlock);
        sum = dealer.take(kQueryBlock);
        size = dealer.dealt;
    }

    int64_t max_width() const { return width > value_width ? width : value_width; }
};

template <class T>
class Forward {
    using C = compute_type<T>;
    static constexpr int64_t kColumns = kWidth<C>;

public:
    explicit Forward(const yoke_launch *launch)
        : query_(launch->operands[0]),
          key_(launch->operands[1]),
          value_(launch->operands[2]),
          mask_(launch->operands[3]),
          out_(launch->operands[4]),
          lse_(launch->operands[5]),
          params_(launch->params),
          sizes_(query_, key_, value_),
          forbids_(forbids_pairs(mask_, params_)),
          dropout_(params_)
    {
    }

    yoke_status run(const yoke_launch *launch) const
    {
        int64_t blocks = divide_up(sizes_.queries, kQueryBlock), items = sizes_.heads * blocks;
        int64_t slots = team_size(), shares = shares_of(sizes_, items);
        int64_t room = ForwardRoom<C>(sizes_, nullptr).size;
        Scratch scratch(launch);
        if (yoke_status status = scratch.reserve((uint64_t)(min(shares, slots) * room) * sizeof(C)))
            return status;
        share_items(items, shares, slots, [&](int64_t slot, int64_t begin, int64_t end) {
            ForwardRoom<C> own(sizes_, (C *)scratch.data() + slot * room);
            for (; begin < end; begin++) {
                // First, last, second, last but one, …: under a causal mask late queries have more keys.
                int64_t i = begin % blocks, block = i % 2 ? blocks - 1 - i / 2 : i / 2;
                run_block(begin / blocks, block * kQueryBlock, own);
            }
        });
        return YOKE_OK;
    }

private:
    void run_block(int64_t head, int64_t first, const ForwardRoom<C> &room) const
    {
        int64_t count = min(kQueryBlock, sizes_.queries - first);
        int64_t keys = params_.causal ? min(sizes_.keys, first + count) : sizes_.keys;
        const Matrix key = head_of(key_, query_, head), value = head_of(value_, query_, head);
        begin_block(head, first, count, room);
        for (int64_t k = 0; k < keys; k += kKeyBlock) {
            int64_t n = min(kKeyBlock, keys - k);
            load_rows<T>(key, k, n, round_up(n, kRows), sizes_.width, sizes_.width, room.keys);
            load_rows<T>(value, k, n, n, sizes_.value_width, room.value_width, room.values);
            const bool strays = forbids_ && clear_strays(room.values, n * room.value_width);
            for (int64_t column = 0; column < count; column += kColumns) {
                int64_t seen =
                    run_strip(head, first, column, min(kColumns, count - column), k, n, room);
                if (strays)
                    add_strays<T, C>(value, k, seen, sizes_.value_width,
                                     {room.scores, kColumns, 1, kColumns}, room.result + column, 1,
                                     kQueryBlock);
            }
        }
        end_block(head, first, count, room);
    }

    void begin_block(int64_t head, int64_t first, int64_t count, const ForwardRoom<C> &room) const
    {
        C *plain = room.keys;  // free until the first block of keys; half a block at a time
        const Matrix query = head_of(query_, query_, head);
        for (int64_t r = 0; r < round_up(count, kColumns); r += kKeyBlock) {
            int64_t rows = min(kKeyBlock, round_up(count, kColumns) - r);
            load_rows<T>(query, first + r, max(0, min(rows, count - r)), rows, sizes_.width,
                         sizes_.width, plain);
            transpose_block(plain, sizes_.width, rows, sizes_.width, (C)params_.scale,
                            room.queries + r, kQueryBlock);
        }
        for (int64_t i = 0; i < room.value_width * kQueryBlock; i++) room.result[i] = (C)0;
        for (int64_t i = 0; i < kQueryBlock; i++) room.max[i] = -(C)kernels::kInfinity;
        for (int64_t i = 0; i < kQueryBlock; i++) room.sum[i] = (C)0;
    }

    // Adds n keys from k on to the results of kColumns queries from first + column on; `count` of these queries
    // exist. Returns the number of keys seen by the queries, and leaves the weights in room.scores.
    int64_t run_strip(int64_t head, int64_t first, int64_t column, int64_t count, int64_t k,
                      int64_t n, const ForwardRoom<C> &room) const
    {
        if (params_.causal) n = min(n, first + column + kColumns - k);
        if (n <= 0) return 0;
        C *scores = room.scores;
        for (int64_t j = 0; j < n; j += kRows)
            tile<Panel::kByRow, false>(room.keys + j * sizes_.width, sizes_.width,
                                       room.queries + column, kQueryBlock, sizes_.width,
                                       scores + j * kColumns, kColumns);
        if (is_present(mask_)) add_mask(head, first + column, count, k, n, scores);
        if (params_.causal) forbid_later(first + column - k, n, scores);
        C factor[kColumns];
        weigh(n, scores, room.max + column, room.sum + column, factor);
        if (k > 0) rescale(factor, column, room);
        if (params_.dropout > 0) drop(head, first + column, count, k, n, scores);
        for (int64_t d = 0; d < room.value_width; d += kRows)
            tile<Panel::kByColumn, true>(room.values + d, room.value_width, scores, kColumns, n,
                                         room.result + d * kQueryBlock + column, kQueryBlock);
        return n;
    }

    void add_mask(int64_t head, int64_t query, int64_t count, int64_t k, int64_t n, C *scores) const
    {
        const Matrix m = head_of(mask_, query_, head);
        for_mask<T>(mask_, [&]<class M>() {
            add_mask_as((const M *)m.data + query * m.row_stride + k * m.column_stride,
                        m.column_stride, m.row_stride, scores, kColumns, n, count);
        });
    }

    // Sets scores to -infinity if the key is later than the query: key j and query `ahead` + l, counted from the
    // block's first key.
    static void forbid_later(int64_t ahead, int64_t n, C *scores)
    {
        for (int64_t j = max(0, ahead); j < n; j++) {
            int32_t distance = (int32_t)(j - ahead);
#pragma omp simd
            for (int32_t l = 0; l < (int32_t)kColumns; l++)
                scores[j * kColumns + l] =
                    kernels::select(l < distance, -(C)kernels::kInfinity, scores[j * kColumns + l]);
        }
    }

    // Turns scores into weights, and updates the rows' maxima and sums. `factor` is the factor for earlier sums.
    static void weigh(int64_t n, C *scores, C *max, C *sum, C *factor)
    {
        C top[kColumns], total[kColumns];
        for (int64_t l = 0; l < kColumns; l++) top[l] = max[l];
        for (int64_t j = 0; j < n; j++)
#pragma omp simd
            for (int64_t l = 0; l < kColumns; l++)
                top[l] = kernels::select(scores[j * kColumns + l] > top[l],
                                         scores[j * kColumns + l], top[l]);
#pragma omp simd
        for (int64_t l = 0; l < kColumns; l++) {
            C old = max[l];
            max[l] = top[l];
            top[l] = kernels::attention_shift(top[l]);
            factor[l] = kernels::attention_rescale(old, top[l]);
            total[l] = sum[l] * factor[l];
        }
        for (int64_t j = 0; j < n; j++)
#pragma omp simd
            for (int64_t l = 0; l < kColumns; l++) {
                C weight = kernels::attention_weight(scores[j * kColumns + l], top[l]);
                scores[j * kColumns + l] = weight;
                total[l] += weight;
            }
        for (int64_t l = 0; l < kColumns; l++) sum[l] = total[l];
    }

    static void rescale(const C *factor, int64_t column, const ForwardRoom<C> &room)
    {
        for (int64_t d = 0; d < room.value_width; d++) {
            C *row = room.result + d * kQueryBlock + column;
#pragma omp simd
            for (int64_t l = 0; l < kColumns; l++) row[l] *= factor[l];
        }
    }

    void drop(int64_t head, int64_t query, int64_t count, int64_t k, int64_t n, C *scores) const
    {
        C factors[kColumns];
        for (int64_t j = 0; j < n; j++) {
            dropout_.draw(sizes_, head, k + j, query, count, factors);
            for (int64_t l = 0; l < count; l++) scores[j * kColumns + l] *= factors[l];
        }
    }

    void end_block(int64_t head, int64_t first, int64_t count, const ForwardRoom<C> &room) const
    {
        const Matrix out = head_of(out_, query_, head);
        C *lse = (C *)lse_.data + head * sizes_.queries + first;
        C *rows = room.keys;  // done with
        for (int64_t l = 0; l < count; l++) {
            C scale = kernels::attention_normaliser(room.sum[l]);
            lse[l] = kernels::attention_log_sum_exp(room.max[l], room.sum[l]);
            if (l % kKeyBlock == 0)
                transpose_block(room.result + l, kQueryBlock, sizes_.value_width,
                                min(kKeyBlock, count - l), (C)1, rows, sizes_.value_width);
            C *row = rows + l % kKeyBlock * sizes_.value_width;
            for (int64_t d = 0; d < sizes_.value_width; d++) row[d] *= scale;
            store_row<T>(out, first + l, row, sizes_.value_width);
        }
    }

    const yoke_operand &query_, &key_, &value_, &mask_, &out_, &lse_;
    const AttentionParams params_;
    const AttentionSizes sizes_;
    const bool forbids_;
    const AttentionDropout<C> dropout_;
};

}  // namespace

YOKE_KERNEL(_attention)
{
    return for_float(launch, "query", launch->operands[0].dtype,
                     [&]<class T>() { return Forward<T>(launch).run(launch); });
}

YOKE_SIMD_END
