// Common parts of all elementwise maps: the walk, the team, and the buffers for operands that are not dense runs.
#include "kernels/cpu/simd/map.h"

#include <cstring>

#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/run.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

YOKE_SIMD_BEGIN

constexpr int64_t kBufferBytes = 2048;   // for each operand; all fit the first-level cache
constexpr int64_t kGroupBytes = 64 * 8;  // the largest group

// ---- less than a group: what is left of a dense run, and the whole of a small tensor --------------------------------
// With the masks of AVX-512, this code does not call memcpy.

#if defined(__AVX512BW__)
static __mmask64 mask_of(int64_t bytes)
{
    return bytes >= 64 ? ~(uint64_t)0 : bytes <= 0 ? 0 : ~(uint64_t)0 >> (64 - bytes);
}

static void load_padded(const char *from, int64_t bytes, int64_t padded, char *to)
{
    for (int64_t at = 0; at < padded; at += 64)
        _mm512_store_si512(to + at, _mm512_maskz_loadu_epi8(mask_of(bytes - at), from + at));
}

static void store_part(const char *from, int64_t bytes, char *to)
{
    for (int64_t at = 0; at < bytes; at += 64)
        _mm512_mask_storeu_epi8(to + at, mask_of(bytes - at), _mm512_load_si512(from + at));
}
#else
static void load_padded(const char *from, int64_t bytes, int64_t padded, char *to)
{
    memcpy(to, from, (size_t)bytes);
    memset(to + bytes, 0, (size_t)(padded - bytes));
}

static void store_part(const char *from, int64_t bytes, char *to)
{
    memcpy(to, from, (size_t)bytes);
}
#endif

template <int N>
static void run_part(const MapLoop &loop, char *const *data, int64_t n)
{
    const MapTypes &types = loop.types;
    alignas(64) char buffers[N][kGroupBytes];
    char *place[N];
#pragma GCC unroll 5
    for (int i = 0; i < N; i++) {
        place[i] = buffers[i];
        if (i > 0)
            load_padded(data[i], n * types.size[i], (int64_t)types.size[i] << types.group_bits,
                        place[i]);
    }
    types.run(loop.functor, place, 1, false);
    store_part(place[0], n * types.size[0], data[0]);
}

// ---- strided, broadcast or narrow operands: blocks that pass through buffers --------------------------------------

// Operand of a block: `rows` runs of n elements each.
struct Rows {
    char *data;
    int64_t stride, n, row_stride, rows;  // strides in bytes
    int64_t size;                         // bytes of a stored element

    bool is_dense() const { return stride == size && (rows == 1 || row_stride == n * size); }
    bool is_same_for_all() const { return stride == 0 && (rows == 1 || row_stride == 0); }
};

// Loop with the stored dtypes of its operands.
class Mapper {
public:
    // Prepares a loop over `total` elements in all, which any threads map in parts.
    Mapper(const MapLoop &loop, const yoke_dtype *dtypes, int64_t total)
        : loop_(loop), types_(loop.types), far_(is_far(total * loop.types.size[0]))
    {
        int bits = 0;  // log2 of the widest element's size
        for (int i = 0; i < types_.count; i++) {
            stored_[i] = dtype_size(dtypes[i]);
            narrow_[i] = stored_[i] < types_.size[i] ? dtypes[i] : (yoke_dtype)YOKE_NONE;
            bits = types_.size[i] > 1 << bits ? __builtin_ctz(types_.size[i]) : bits;
        }
        block_ = kBufferBytes >> bits;
    }

    // Returns the elements of a block. Rows that are much shorter are worth taking several at a time.
    int64_t block() const { return block_; }

    // Maps n elements of every operand.
    void run(char *const *data, const int64_t *stride, int64_t n) const
    {
        bool dense = true;
        for (int i = 0; i < types_.count; i++)
            dense &= stride[i] == types_.size[i] && narrow_[i] == YOKE_NONE;
        if (!dense) return run_blocks(data, stride, n);
        int64_t groups = n >> types_.group_bits, whole = groups << types_.group_bits;
        if (groups) types_.run(loop_.functor, data, groups, far_);
        if (whole == n) return;
        char *rest[kMapOperands];
        for (int i = 0; i < types_.count; i++) rest[i] = data[i] + whole * stride[i];
        run_rest(rest, n - whole);
    }

    // Maps several rows, together at most a block.
    void run_rows(char *const *data, const int64_t *stride, int64_t n, const int64_t *row_stride,
                  int64_t rows) const
    {
        alignas(64) char buffers[kMapOperands][kBufferBytes];
        Rows operands[kMapOperands];
        for (int i = 0; i < types_.count; i++)
            operands[i] = {data[i], stride[i], n, row_stride[i], rows, stored_[i]};
        run_block(operands, buffers, false);
    }

private:
    void run_rest(char *const *data, int64_t n) const
    {
        if (types_.count == 2) return run_part<2>(loop_, data, n);
        if (types_.count == 3) return run_part<3>(loop_, data, n);
        if (types_.count == 4) return run_part<4>(loop_, data, n);
        return run_part<5>(loop_, data, n);
    }

    void run_blocks(char *const *data, const int64_t *stride, int64_t n) const
    {
        alignas(64) char buffers[kMapOperands][kBufferBytes];
        Rows operands[kMapOperands];
        for (int64_t at = 0; at < n; at += block_) {
            for (int i = 0; i < types_.count; i++)
                operands[i] = {
                    data[i] + at * stride[i], stride[i], min(block_, n - at), 0, 1, stored_[i]};
            run_block(operands, buffers, at > 0);
        }
    }

    // Maps a block. With `again`, operands with a single value for all elements are in their buffers already.
    void run_block(const Rows *operands, char (*buffers)[kBufferBytes], bool again) const
    {
        char *place[kMapOperands];
        int64_t count = operands[0].n * operands[0].rows;
        int64_t group = (int64_t)1 << types_.group_bits, padded = (count + group - 1) & -group;
        for (int i = 0; i < types_.count; i++) {
            const Rows &operand = operands[i];
            bool serves = padded == count && narrow_[i] == YOKE_NONE && operand.is_dense();
            place[i] = serves ? operand.data : buffers[i];
            if (i > 0 && !serves && !(again && operand.is_same_for_all()))
                load(operand, i, count, padded, place[i]);
        }
        types_.run(loop_.functor, place, padded >> types_.group_bits, false);
        if (place[0] == buffers[0]) store(operands[0], count, place[0]);
    }

    // Loads an operand's elements in the loop's type, and adds zeros up to `padded` elements.
    void load(const Rows &rows, int i, int64_t count, int64_t padded, char *to) const
    {
        alignas(64) char raw[kBufferBytes / 2];
        const char *run = rows.data;
        if (!rows.is_dense()) {
            char *gathered = narrow_[i] == YOKE_NONE ? to : raw;
            for (int64_t r = 0; r < rows.rows; r++)
                gather_run(rows.data + r * rows.row_stride, rows.stride, rows.n, rows.size,
                           gathered + r * rows.n * rows.size);
            run = gathered;
        }
        if (narrow_[i] != YOKE_NONE)
            widen_run(narrow_[i], run, count, (float *)to);
        else if (run != to)
            memcpy(to, run, (size_t)(count * rows.size));
        memset(to + count * types_.size[i], 0, (size_t)((padded - count) * types_.size[i]));
    }

    void store(const Rows &rows, int64_t count, const char *from) const
    {
        alignas(64) char raw[kBufferBytes / 2];
        if (narrow_[0] != YOKE_NONE) {
            char *to = rows.is_dense() ? rows.data : raw;
            narrow_run(narrow_[0], (const float *)from, count, to);
            if (to == rows.data) return;
            from = raw;
        }
        for (int64_t r = 0; r < rows.rows; r++)
            scatter_run(from + r * rows.n * rows.size, rows.data + r * rows.row_stride, rows.stride,
                        rows.n, rows.size);
    }

    const MapLoop &loop_;
    const MapTypes &types_;
    const bool far_;
    int64_t block_;
    int64_t stored_[kMapOperands];     // bytes of an element
    yoke_dtype narrow_[kMapOperands];  // dtype of a converted operand, else YOKE_NONE
};

void map_run(const MapLoop &loop, const yoke_dtype *dtypes, char *const *data,
             const int64_t *stride, int64_t n)
{
    Mapper(loop, dtypes, n).run(data, stride, n);
}

// ---- whole operands ---------------------------------------------------------------------------------------------

// Maps elements [begin, end) of a loop with short rows, as many rows at a time as a block holds.
template <int N>
static void walk_rows(const Mapper &mapper, const Loop<N> &loop, int64_t begin, int64_t end)
{
    const int64_t length = loop.shape[0], most = mapper.block() / length;
    Cursor<N> cursor(loop, begin);
    while (begin < end) {
        int64_t n = min(length - cursor.at[0], end - begin);
        if (n < length) {  // where the range begins or ends
            mapper.run(cursor.data, loop.stride[0], n);
            cursor.advance(loop, 0, n);
        } else {
            int64_t rows = min(min(most, (end - begin) / length), loop.shape[1] - cursor.at[1]);
            mapper.run_rows(cursor.data, loop.stride[0], length, loop.stride[1], rows);
            cursor.advance(loop, 1, rows);
            n = rows * length;
        }
        begin += n;
    }
}

template <int N>
static void map_walk(const Mapper &mapper, const yoke_operand *const *operands, int64_t grain)
{
    const yoke_operand *all[N];
    for (int i = 0; i < N; i++) all[i] = operands[i];
    Loop<N> loop;
    plan_loop<N>(loop, all);
    bool is_short = loop.ndim > 1 && loop.shape[0] * 4 <= mapper.block();
    parallel_range(loop.numel, grain, [&](int64_t begin, int64_t end) {
        if (is_short) return walk_rows<N>(mapper, loop, begin, end);
        walk<N>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            mapper.run(data, stride, n);
        });
    });
}

// Maps fewer elements than a group, in N dense runs of the loop's own types. Most small tensors are like this, so the
// function prepares as little as possible. Returns false for other operands.
template <int N>
static bool map_part(const MapLoop &loop, const yoke_operand *const *operands)
{
    const int64_t n = operands[0]->numel;
    if (n >> loop.types.group_bits != 0) return false;
    char *data[N];
    bool part = true;
#pragma GCC unroll 5
    for (int i = 0; i < N; i++) {
        const yoke_operand &operand = *operands[i];
        data[i] = data_of<char>(operand);
        part &= operand.numel == n && is_contiguous(operand) &&
                dtype_size(operand.dtype) == loop.types.size[i];
    }
    if (part) run_part<N>(loop, data, n);
    return part;
}

static void map_any(const Mapper &mapper, int count, const yoke_operand *const *operands,
                    int64_t grain)
{
    if (count == 2) return map_walk<2>(mapper, operands, grain);
    if (count == 3) return map_walk<3>(mapper, operands, grain);
    if (count == 4) return map_walk<4>(mapper, operands, grain);
    return map_walk<5>(mapper, operands, grain);
}

// Maps operands of any form. Separate from map_operands, so small launches do not pay for its registers and stack.
static __attribute__((noinline)) void map_whole(const MapLoop &loop,
                                                const yoke_operand *const *operands, int64_t grain)
{
    const int count = loop.types.count;
    const int64_t n = operands[0]->numel;
    char *data[kMapOperands];
    yoke_dtype dtypes[kMapOperands];
    int64_t stride[kMapOperands];
    bool simple = n < 2 * grain && is_contiguous(*operands[0]);
    for (int i = 0; i < count; i++) {
        data[i] = data_of<char>(*operands[i]);
        dtypes[i] = operands[i]->dtype;
        stride[i] = operands[i]->numel == n ? dtype_size(dtypes[i]) : 0;
        simple = simple && is_run_or_value(*operands[i], n);
    }
    Mapper mapper(loop, dtypes, n);
    if (simple)
        mapper.run(data, stride, n);
    else
        map_any(mapper, count, operands, grain);
}

yoke_status map_operands(const MapLoop &loop, const yoke_operand *const *operands, int64_t grain)
{
    const int count = loop.types.count;
    if (operands[0]->numel == 0) return YOKE_OK;
    if (!(count == 2 ? map_part<2>(loop, operands) : count == 3 && map_part<3>(loop, operands)))
        map_whole(loop, operands, grain);
    return YOKE_OK;
}

YOKE_SIMD_END
