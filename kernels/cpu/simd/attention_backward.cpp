// Gradients of attention. Probabilities are computed again from the rows' log-sum-exp.
//
// A block of keys owns its rows of dK and dV, and takes the blocks of queries in turn. The columns of a vector are
// keys, so only the block of keys is transposed. dQ is summed over blocks of keys in order, in separate memory. With
// few heads, the blocks of a head are divided among several such sums, which are added in order. Their number depends
// on the shapes only, so the bits do not depend on the number of threads.
#include "kernels/cpu/simd/attention.h"

YOKE_SIMD_BEGIN

constexpr int64_t kFewHeads = 32, kMostSplits = 8;

namespace {

// Memory of a thread, each part in rows of the computing type. Widths are padded to whole tiles, rows to whole panels.
template <class C>
struct BackwardRoom {
    int64_t width, value_width;
    C *keys, *keys_across;  // a block of keys, as it is and transposed
    C *values_across;       // a block of values, only transposed
    C *d_keys, *d_values;   // their gradients
    C *queries, *grads;     // a block of queries, and of the result's gradient
    C *weights, *slopes;    // probabilities, and the gradients of scores: queries x keys
    C *factors;             // dropout's factors: keys x queries
    C *dots;                // a dot product for each query of the head
    int64_t size;

    static constexpr int64_t kBlockRows = kKeyBlock + kRows;

    BackwardRoom(const AttentionSizes &s, C *room)
        : width(round_up(s.width, kWidth<C>)), value_width(round_up(s.value_width, kWidth<C>))
    {
        Dealer<C> dealer{room};
        keys = dealer.take(kBlockRows * width);
        keys_across = dealer.take(s.width * kKeyBlock);
        values_across = dealer.take(s.value_width * kKeyBlock);
        d_keys = dealer.take(kBlockRows * width);
        d_values = dealer.take(kBlockRows * value_width);
        queries = dealer.take(kBlockRows * width);
        grads = dealer.take(kBlockRows * value_width);
        weights = dealer.take(kBlockRows * kKeyBlock);
        slopes = dealer.take(kBlockRows * kKeyBlock);
        factors = dealer.take(kKeyBlock * kKeyBlock);
        dots = dealer.take(s.queries);
        size = dealer.dealt;
    }
};

template <class T>
class AttentionBackward {
    using C = compute_type<T>;
    static constexpr int64_t kColumns = kWidth<C>;

public:
    explicit AttentionBackward(const yoke_launch *launch)
        : grad_(launch->operands[0]),
          query_(launch->operands[1]),
          key_(launch->operands[2]),
          value_(launch->operands[3]),
          mask_(launch->operands[4]),
          out_(launch->operands[5]),
          lse_(launch->operands[6]),
          d_query_(launch->operands[7]),
          d_key_(launch->operands[8]),
          d_value_(launch->operands[9]),
          params_(launch->params),
          sizes_(query_, key_, value_),
          forbids_(forbids_pairs(mask_, params_)),
          dropout_(params_),
          blocks_(divide_up(sizes_.keys, kKeyBlock)),
          splits_(
              max(1, min(min(divide_up(kFewHeads, max(1, sizes_.heads)), kMostSplits), blocks_))),
          sum_rows_(round_up(sizes_.queries, kKeyBlock) + kRows)
    {
    }

    yoke_status run(const yoke_launch *launch)
    {
        int64_t items = sizes_.heads * splits_, shares = shares_of(sizes_, items);
        int64_t slots = team_size(), rooms = min(shares, slots);
        int64_t room = BackwardRoom<C>(sizes_, nullptr).size;
        int64_t width = round_up(sizes_.width, kColumns), sum = sum_rows_ * width;
        int64_t sums = splits_ == 1 ? rooms : items;
        Scratch scratch(launch);
        if (yoke_status status = scratch.reserve((uint64_t)(rooms * room + sums * sum) * sizeof(C)))
            return status;
        C *all_rooms = (C *)scratch.data(), *all_sums = all_rooms + rooms * room;
        share_items(items, shares, slots, [&](int64_t slot, int64_t begin, int64_t end) {
            BackwardRoom<C> own(sizes_, all_rooms + slot * room);
            for (; begin < end; begin++) {
                C *d_queries = all_sums + (splits_ == 1 ? slot : begin) * sum;
                run_head(begin / splits_, begin % splits_, own, d_queries);
                if (splits_ == 1) store_queries(begin, d_queries, width);
            }
        });
        if (splits_ > 1)
            share_items(sizes_.heads, min(shares, sizes_.heads), slots,
                        [&](int64_t, int64_t begin, int64_t end) {
                            for (; begin < end; begin++)
                                join_splits(begin, all_sums + begin * splits_ * sum, sum, width);
                        });
        return YOKE_OK;
    }

private:
    void join_splits(int64_t head, C *sums, int64_t sum, int64_t width) const
    {
        for (int64_t split = 1; split < splits_; split++)
            for (int64_t i = 0; i < sum; i++) sums[i] += sums[split * sum + i];
        store_queries(head, sums, width);
    }

    void store_queries(int64_t head, C *sums, int64_t width) const
    {
        store_scaled(head_of(d_query_, query_, head), 0, sizes_.queries, sums, width, sizes_.width,
                     (C)params_.scale);
    }

    static void store_scaled(const Matrix &m, int64_t first, int64_t count, C *rows, int64_t step,
                             int64_t width, C scale)
    {
        for (int64_t r = 0; r < count; r++, rows += step) {
            for (int64_t d = 0; d < width; d++) rows[d] *= scale;
            store_row<T>(m, first + r, rows, width);
        }
    }

    // Computes the gradients for a split of a head: for every splits_-th block of keys, from number `split` on. Adds
    // the gradients of queries into `d_queries`.
    void run_head(int64_t head, int64_t split, const BackwardRoom<C> &room, C *d_queries) const
    {
        for (int64_t i = 0; i < sum_rows_ * room.width; i++) d_queries[i] = (C)0;
        const Matrix query = head_of(query_, query_, head), grad = head_of(grad_, query_, head);
        const Matrix key = head_of(key_, query_, head);
        const C *lse = (const C *)lse_.data + head * sizes_.queries;
        find_dots(head, room);
        for (int64_t block = split; block < blocks_; block += splits_) {
            int64_t k = block * kKeyBlock, n = min(kKeyBlock, sizes_.keys - k);
            const bool strays = load_keys(head, k, n, room);
            for (int64_t q = params_.causal ? k : 0; q < sizes_.queries; q += kKeyBlock) {
                int64_t count = min(kKeyBlock, sizes_.queries - q);
                load_rows<T>(query, q, count, round_up(count, kRows), sizes_.width, room.width,
                             room.queries);
                load_rows<T>(grad, q, count, round_up(count, kRows), sizes_.value_width,
                             room.value_width, room.grads);
                run_pair(head, q, count, k, n, lse + q, room, d_queries + q * room.width);
                if (strays)
                    add_strays<T, C>(key, k, n, sizes_.width, {room.slopes, 1, kKeyBlock, count},
                                     d_queries + q * room.width, room.width, 1);
            }
            store_scaled(head_of(d_key_, query_, head), k, n, room.d_keys, room.width, sizes_.width,
                         (C)params_.scale);
            store_scaled(head_of(d_value_, query_, head), k, n, room.d_values, room.value_width,
                         sizes_.value_width, (C)1);
        }
    }

    // Computes the dot product of each row of the result and its gradient: the term subtracted in softmax's gradient.
    void find_dots(int64_t head, const BackwardRoom<C> &room) const
    {
        const Matrix grad = head_of(grad_, query_, head), out = head_of(out_, query_, head);
        int64_t width = room.value_width;
        C *outs = room.d_values;  // not in use yet
        for (int64_t q = 0; q < sizes_.queries; q += kKeyBlock) {
            int64_t count = min(kKeyBlock, sizes_.queries - q);
            load_rows<T>(grad, q, count, count, sizes_.value_width, width, room.grads);
            load_rows<T>(out, q, count, count, sizes_.value_width, width, outs);
            for (int64_t r = 0; r < count; r++) {
                const C *a = room.grads + r * width, *b = outs + r * width;
                C columns[kColumns] = {};
                for (int64_t d = 0; d < width; d += kColumns)
                    for (int64_t l = 0; l < kColumns; l++) columns[l] += a[d + l] * b[d + l];
                for (int64_t half = kColumns / 2; half > 0; half /= 2)
                    for (int64_t l = 0; l < half; l++) columns[l] += columns[l + half];
                room.dots[q + r] = columns[0];
            }
        }
    }

    // Loads n keys and values from k on, also transposed, and sets their gradients to 0. If the launch can forbid
    // pairs, sets infinite and NaN elements of room.keys to 0. Returns whether it found such an element.
    bool load_keys(int64_t head, int64_t k, int64_t n, const BackwardRoom<C> &room) const
    {
        const Matrix key = head_of(key_, query_, head), value = head_of(value_, query_, head);
        load_rows<T>(value, k, n, kKeyBlock, sizes_.value_width, room.value_width, room.d_values);
        transpose_block(room.d_values, room.value_width, kKeyBlock, sizes_.value_width, (C)1,
                        room.values_across, kKeyBlock);
        load_rows<T>(key, k, n, kKeyBlock, sizes_.width, room.width, room.keys);
        transpose_block(room.keys, room.width, kKeyBlock, sizes_.width, (C)params_.scale,
                        room.keys_across, kKeyBlock);
        const bool strays = forbids_ && clear_strays(room.keys, kKeyBlock * room.width);
        for (int64_t i = 0; i < room.kBlockRows * room.width; i++) room.d_keys[i] = (C)0;
        for (int64_t i = 0; i < room.kBlockRows * room.value_width; i++) room.d_values[i] = (C)0;
        return strays;
    }

    // Adds the gradients of `count` queries from q on and n keys from k on.
    void run_pair(int64_t head, int64_t q, int64_t count, int64_t k, int64_t n, const C *lse,
                  const BackwardRoom<C> &room, C *d_queries) const
    {
        int64_t ahead =
            params_.causal ? q - k : sizes_.keys;  // keys that the first query sees, less 1
        for (int64_t i = 0; i < count; i += kRows) {
            int64_t seen = round_up(min(n, ahead + i + kRows), kColumns);
            tile_row<Panel::kByRow, false>(room.queries + i * room.width, room.width,
                                           room.keys_across, kKeyBlock, sizes_.width,
                                           room.weights + i * kKeyBlock, kKeyBlock, seen);
            tile_row<Panel::kByRow, false>(room.grads + i * room.value_width, room.value_width,
                                           room.values_across, kKeyBlock, sizes_.value_width,
                                           room.slopes + i * kKeyBlock, kKeyBlock, seen);
        }
        if (is_present(mask_)) add_mask(head, q, count, k, n, room.weights);
        if (params_.dropout > 0) draw_factors(head, q, count, k, n, room.factors);
        for (int64_t i = 0; i < count; i++)
            weigh(min(n, ahead + i + 1), room.weights + i * kKeyBlock, room.slopes + i * kKeyBlock,
                  room.factors + i, lse[i], room.dots[q + i]);
        for (int64_t i = count * kKeyBlock; i < round_up(count, kRows) * kKeyBlock; i++)
            room.slopes[i] = (C)0;  // rest of the last panel
        if (forbids_) add_stray_queries(head, q, count, n, room);
        for (int64_t j = 0; j < n; j += kRows) {
            int64_t skip = max(0, j - ahead);  // queries before the panel's first key
            tile_row<Panel::kByColumn, true>(room.weights + skip * kKeyBlock + j, kKeyBlock,
                                             room.grads + skip * room.value_width, room.value_width,
                                             count - skip, room.d_values + j * room.value_width,
                                             room.value_width, room.value_width);
            tile_row<Panel::kByColumn, true>(
                room.slopes + skip * kKeyBlock + j, kKeyBlock, room.queries + skip * room.width,
                room.width, count - skip, room.d_keys + j * room.width, room.width, room.width);
        }
        for (int64_t i = 0; i < count; i += kRows)
            tile_row<Panel::kByRow, true>(room.slopes + i * kKeyBlock, kKeyBlock, room.keys,
                                          room.width, min(n, ahead + i + kRows),
                                          d_queries + i * room.width, room.width, room.width);
    }

    // Adds infinite and NaN elements of queries, and of the result's gradients, to the gradients of keys and values.
    void add_stray_queries(int64_t head, int64_t q, int64_t count, int64_t n,
                           const BackwardRoom<C> &room) const
    {
        if (clear_strays(room.queries, count * room.width))
            add_strays<T, C>(head_of(query_, query_, head), q, count, sizes_.width,
                             {room.slopes, kKeyBlock, 1, n}, room.d_keys, room.width, 1);
        if (clear_strays(room.grads, count * room.value_width))
            add_strays<T, C>(head_of(grad_, query_, head), q, count, sizes_.value_width,
                             {room.weights, kKeyBlock, 1, n}, room.d_values, room.value_width, 1);
    }

    void add_mask(int64_t head, int64_t q, int64_t count, int64_t k, int64_t n, C *scores) const
    {
        const Matrix m = head_of(mask_, query_, head);
        for_mask<T>(mask_, [&]<class M>() {
            add_mask_as((const M *)m.data + q * m.row_stride + k * m.column_stride, m.row_stride,
                        m.column_stride, scores, kKeyBlock, count, n);
        });
    }

    void draw_factors(int64_t head, int64_t q, int64_t count, int64_t k, int64_t n, C *to) const
    {
        for (int64_t j = 0; j < n; j++)
            dropout_.draw(sizes_, head, k + j, q, count, to + j * kKeyBlock);
    }

    // Handles a single query: turns scores into the factors of values (the probabilities, with dropout), and the
    // gradients of these factors into gradients of scores. Keys from `seen` on are not for this query.
    void weigh(int64_t seen, C *weights, C *slopes, const C *factors, C lse, C dot) const
    {
        if (params_.dropout > 0) {
            for (int64_t j = 0; j < seen; j++) {
                C p = kernels::attention_probability(weights[j], lse);
                C factor = factors[j * kKeyBlock];
                weights[j] = p * factor;
                slopes[j] = kernels::attention_score_backward(p, slopes[j] * factor, dot);
            }
        } else {
#pragma omp simd
            for (int64_t j = 0; j < seen; j++) {
                C p = kernels::attention_probability(weights[j], lse);
                weights[j] = p;
                slopes[j] = kernels::attention_score_backward(p, slopes[j], dot);
            }
        }
        for (int64_t j = max(0, seen); j < kKeyBlock; j++) weights[j] = slopes[j] = (C)0;
    }

    const yoke_operand &grad_, &query_, &key_, &value_, &mask_, &out_, &lse_;
    const yoke_operand &d_query_, &d_key_, &d_value_;
    const AttentionParams params_;
    const AttentionSizes sizes_;
    const bool forbids_;
    const AttentionDropout<C> dropout_;
    const int64_t blocks_, splits_, sum_rows_;
};

}  // namespace

YOKE_KERNEL(_attention_backward)
{
    return for_float(launch, "query", launch->operands[1].dtype,
                     [&]<class T>() { return AttentionBackward<T>(launch).run(launch); });
}

YOKE_SIMD_END
