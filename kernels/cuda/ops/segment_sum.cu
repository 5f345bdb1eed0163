#include "kernels/cuda/ops/segment_sum.cuh"

#include "kernels/common/elementwise.h"

YOKE_CUDA_BEGIN

constexpr int kChunk = 64;
constexpr int kRowsAtOnce = 4;
constexpr uint32_t kNothing = 0xffffffffu;  // marks an empty entry

// ---- entries --------------------------------------------------------------------------------------------------------

yoke_status EntryList::reserve(int64_t count, int64_t places)
{
    if (count > kMostPairs)
        return fail(YOKE_E_VALUE, 0,
                    "%s: there are %lld indices; the cuda kernel supports at most %lld",
                    op_name(launch_->op), (long long)count, (long long)kMostPairs);
    keys_.wide = places >= 0xffffffffll;
    keys_.count = count;
    keys_.bound = (uint64_t)places;
    const uint64_t bytes =
        keys_.wide ? Pairs<uint64_t>::bytes(count) : Pairs<uint32_t>::bytes(count);
    if (const yoke_status status = scratch_.reserve(bytes)) return status;
    auto *memory = scratch_.as<char>();
    keys_.key = memory;
    keys_.number = keys_.wide ? Pairs<uint64_t>::in(memory, count).number
                              : Pairs<uint32_t>::in(memory, count).number;
    return YOKE_OK;
}

template <class K>
static yoke_status sort_keys(const yoke_launch *launch, Keys &keys)
{
    auto pairs = Pairs<K>::in(static_cast<char *>(keys.key), keys.count);
    const yoke_status status = sort_pairs(launch, pairs, bits_of(keys.bound));
    keys.key = pairs.key;
    keys.number = pairs.number;
    return status;
}

yoke_status EntryList::sort()
{
    if (keys_.count <= 1) return YOKE_OK;
    return keys_.wide ? sort_keys<uint64_t>(launch_, keys_) : sort_keys<uint32_t>(launch_, keys_);
}

__global__ void list_entries(Keys keys, Places places, int64_t skipped)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < places.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t at = places.at(i);
        keys.list(i, at == skipped ? -1 : at);
    }
}

yoke_status EntryList::list(const Places &places, int64_t bound, int64_t skipped)
{
    if (const yoke_status status = reserve(places.count, bound)) return status;
    const int threads = block_size(kThreads);
    if (const yoke_status status =
            start(launch_, list_entries, {blocks_for(launch_, places.count, threads), threads},
                  keys_, places, skipped))
        return status;
    return sort();
}

// ---- sums -----------------------------------------------------------------------------------------------------------

struct Rows {
    Walk<2> columns;
    Walk<1> own, middle;
    bool adds;
    Split by_packs;  // division by the packs of a row
};

// Sums by slot, for the next pass. A chunk has two slots: for the sums of its first and its last run.
struct Partials {
    void *data = nullptr;
    int64_t length = 0;  // elements of a row
};

// Adder of a pass. From is the type of the rows that are read: elements of the operand (T), or sums of an earlier
// pass.
template <class From, class T, int N>
struct Summer {
    using C = kernels::sum_kept<T>;
    Keys keys;
    Rows rows;
    Partials source, target;  // source.data is null in the first pass, target.data in the last
    Keys next;

    __device__ Pack<From, N> read(uint32_t number, int64_t pack, const char *column) const
    {
        if (source.data)
            return load_pack<N>((const From *)source.data + number * source.length + pack * N);
        return load_pack<N>((const From *)(column + offset_in(rows.own, number)));
    }

    // Adds the entries [first, last) in sequence, into sum. Returns false if there are no entries.
    __device__ bool add(int64_t first, int64_t last, int64_t pack, const char *column,
                        Pack<C, N> &sum) const
    {
        bool any = false;
        for (int64_t i = first; i < last; i += kRowsAtOnce) {
            Pack<From, N> row[kRowsAtOnce];
            bool there[kRowsAtOnce];
            YOKE_UNROLL
            for (int k = 0; k < kRowsAtOnce; k++) {
                const uint32_t number = i + k < last ? keys.number[i + k] : kNothing;
                there[k] = number != kNothing;
                row[k] = there[k] ? read(number, pack, column) : Pack<From, N>{};
            }
            YOKE_UNROLL
            for (int k = 0; k < kRowsAtOnce; k++) {
                if (!there[k]) continue;
                YOKE_UNROLL
                for (int c = 0; c < N; c++) {
                    const C x = convert<C>(row[k].at[c]);
                    sum.at[c] = any ? kernels::added(sum.at[c], x) : x;
                }
                any = true;
            }
        }
        return any;
    }

    __device__ void write(uint64_t place, char *column, const Pack<C, N> &sum) const
    {
        T *to = (T *)(column + offset_in(rows.middle, (int64_t)place));
        Pack<T, N> result = rows.adds ? load_pack<N>((const T *)to) : Pack<T, N>{};
        YOKE_UNROLL
        for (int c = 0; c < N; c++)
            result.at[c] = convert<T>(
                rows.adds ? kernels::added(convert<C>(result.at[c]), sum.at[c]) : sum.at[c]);
        store_pack<N>(to, result);
    }

    // Adds the run that begins at entry i, for a pack of columns. A run is the entries of the same place in a chunk.
    // If the run is all of its place, writes the sum to the result, else leaves it to the next pass. Does nothing if
    // no run begins at i.
    __device__ void sum_run(int64_t i, int64_t pack) const
    {
        const uint64_t place = keys.at(i);
        const int64_t chunk = i / kChunk, end = min(keys.count, (chunk + 1) * kChunk);
        const bool continues = i > 0 && keys.at(i - 1) == place, is_first = i % kChunk == 0;
        if (continues && !is_first) return;
        int64_t last = i + 1;
        while (last < end && keys.at(last) == place) last++;
        const bool is_whole = !continues && (last == keys.count || keys.at(last) != place);
        bool any = false;
        Pack<C, N> sum{};
        const Place<2> column = rows.columns.at(pack * N);
        if (place < keys.bound) any = add(i, last, pack, column.data[1], sum);
        if (is_whole && any) write(place, column.data[0], sum);
        if (!target.data) return;
        const auto slot = (uint32_t)(2 * chunk + (is_first ? 0 : 1));
        const bool is_kept = any && !is_whole;
        if (is_kept) store_pack<N>((C *)target.data + slot * target.length + pack * N, sum);
        if (pack == 0 && (is_first || last == end))
            next.set(slot, place, is_kept ? slot : kNothing);
        if (pack == 0 && is_first && last == end) next.set(slot + 1, place, kNothing);
    }
};

template <class From, class T, int N>
__global__ void sum_runs(Summer<From, T, N> summer)
{
    const int64_t packs = summer.rows.by_packs.length, items = summer.keys.count * packs;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < items;
         item += (int64_t)gridDim.x * blockDim.x) {
        const int64_t i = summer.rows.by_packs.quotient(item);
        summer.sum_run(i, item - i * packs);
    }
}

constexpr int kMostPasses = 8;  // each divides the entries by 32

// The passes' memory: slots with their places, and rows of sums.
struct Passes {
    Keys keys[kMostPasses];
    Partials sums[kMostPasses];
    int count = 0;
};

template <class C>
static yoke_status reserve_passes(const Keys &keys, int64_t width, Scratch &scratch, Passes &passes)
{
    int64_t count = keys.count, slots = 0;
    passes.keys[0] = keys;
    for (passes.count = 1; count > kChunk; passes.count++) {
        count = 2 * divide_up(count, kChunk);
        slots += count;
        passes.keys[passes.count] = {nullptr, nullptr, count, keys.bound, keys.wide};
    }
    if (slots == 0) return YOKE_OK;
    const int64_t row = divide_up(width * (int64_t)sizeof(C), 16) * 16;
    if (const yoke_status status = scratch.reserve((uint64_t)(slots * (row + 8 + 4))))
        return status;
    char *sums = scratch.as<char>(), *places = sums + slots * row, *numbers = places + slots * 8;
    for (int i = 1; i < passes.count; i++) {
        Keys &next = passes.keys[i];
        passes.sums[i] = {sums, row / (int64_t)sizeof(C)};
        next.key = places;
        next.number = reinterpret_cast<uint32_t *>(numbers);
        sums += next.count * row;
        places += next.count * 8;
        numbers += next.count * 4;
    }
    return YOKE_OK;
}

template <class From, class T, int N>
static yoke_status start_pass(const yoke_launch *launch, const Rows &rows, const Passes &passes,
                              int pass)
{
    const bool is_last = pass + 1 == passes.count;
    const Summer<From, T, N> summer{passes.keys[pass], rows, passes.sums[pass],
                                    is_last ? Partials() : passes.sums[pass + 1],
                                    is_last ? Keys() : passes.keys[pass + 1]};
    const int threads = block_size(kThreads);
    const int64_t items = passes.keys[pass].count * rows.by_packs.length;
    return start(launch, sum_runs<From, T, N>, {blocks_for(launch, items, threads, 64), threads},
                 summer);
}

template <class T, int N>
static yoke_status sum_by(const yoke_launch *launch, const Keys &keys, const Addition &addition)
{
    using C = kernels::sum_kept<T>;
    const int64_t packs = addition.columns.numel / N;
    const Rows rows{Walk<2>(addition.columns), Walk<1>(addition.own), Walk<1>(addition.middle),
                    addition.adds, Split(packs, keys.count * packs)};
    Scratch scratch(launch);
    Passes passes;
    if (const yoke_status status = reserve_passes<C>(keys, packs * N, scratch, passes))
        return status;
    yoke_status status = start_pass<T, T, N>(launch, rows, passes, 0);
    for (int pass = 1; !status && pass < passes.count; pass++)
        status = start_pass<C, T, N>(launch, rows, passes, pass);
    return status;
}

// Returns whether rows can be read and written N elements at a time.
template <class T, int N>
static bool is_packed(const Addition &addition)
{
    const Loop<2> &columns = addition.columns;
    constexpr int64_t size = sizeof(T), bytes = N * size;
    bool packed = columns.ndim == 1 && columns.numel % N == 0 && columns.stride[0][0] == size &&
                  columns.stride[0][1] == size && is_aligned(columns.data[0], bytes) &&
                  is_aligned(columns.data[1], bytes);
    for (const Loop<1> *loop : {&addition.own, &addition.middle})
        for (int axis = 0; axis < loop->ndim; axis++) packed &= loop->stride[axis][0] % bytes == 0;
    return packed;
}

yoke_status sum_entries(const yoke_launch *launch, const EntryList &entries,
                        const Addition &addition, yoke_dtype dtype)
{
    const Keys &keys = entries.keys();
    if (keys.count == 0 || addition.columns.numel == 0) return YOKE_OK;
    return for_any(launch, "x", dtype, [&]<class T>() {
        constexpr int N = is_float<T> ? 16 / (int)sizeof(kernels::sum_kept<T>) : 1;
        return is_packed<T, N>(addition) ? sum_by<T, N>(launch, keys, addition)
                                         : sum_by<T, 1>(launch, keys, addition);
    });
}

YOKE_CUDA_END
