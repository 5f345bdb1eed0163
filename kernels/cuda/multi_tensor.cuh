// Work over the tensors of a list in one launch: a table of them in the kernel's arguments, a block for each chunk.
//
// Contract
//  * An operation Op on elements, derived from OpOn, works on kOperands tensors of one shape:
//      kReads, kWrites         bit k: operand k is read before and written after; one that is only written may be absent
//      kElements               how many of a tensor a thread takes at once, so that enough bytes are on their way
//      is_skipped()            nothing is to change; asked on the device
//      settle(data) → Settled  what is the same for all elements of a tensor, found once for a block; data[kOperands…]
//                              are the tensor's further pointers
//      op(settled, x, sum)     one element: x holds its operands; sum is the thread's own
//      finish(sum)             by all threads of a block together, at its end
//      starts_at(block)        on the host, before each launch: how many blocks earlier ones of this list had
//  * Tensors that are dense and alike take the table, 16 bytes at a time where they are aligned; storage types are those
//    of Types<…>. The rest, of whatever strides and dtypes, take a launch each.
//  * Chunks depend on the sizes alone, so that sums of them do.
#pragma once

#include <vector>

#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

// The storage types of an Op's operands.
template <class... T>
struct Types {
};

struct Nothing {};

// What most operations have in common. They compute in C and read and write the operands of the two masks.
template <class C, int N, unsigned reads, unsigned writes, int bytes>
struct OpOn {
    using Compute = C;
    using Settled = Nothing;
    using Sum = Nothing;
    static constexpr int kOperands = N, kPointers = N, kElements = bytes / (int)sizeof(C);
    static constexpr unsigned kReads = reads, kWrites = writes;

    __device__ bool is_skipped() const { return false; }
    __device__ void finish(Nothing) const {}
    void starts_at(int64_t) const {}
};

// How many elements a block takes: enough blocks to keep a device busy, of enough work to be worth their start.
inline int64_t chunk_of(int64_t total)
{
    return max(4096, divide_up(divide_up(total, 8192), 1024) * 1024);
}

inline int64_t total_numel(const yoke_operand *tensors, int64_t count)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += tensors[i].numel;
    return total;
}

// How many operands from `first` on are written: a list of muts that a list of tensors follows.
inline int64_t count_written(const yoke_launch *launch)
{
    int64_t n = 0;
    while (n < launch->operand_count && (launch->operands[n].flags & YOKE_OPERAND_WRITE)) n++;
    return n;
}

// ---- tables of tensors -------------------------------------------------------------------------------------------------

// CUDA takes 32,764 bytes of arguments; few tensors fit into less, which is faster to launch.
constexpr int kFewBytes = 4096, kManyBytes = 32764, kOpBytes = 128;

template <int P, int kBytes>
struct Table {
    static constexpr int kCapacity = (kBytes - kOpBytes - 32) / (8 * P + 13);
    int64_t chunk = 0;
    int32_t count = 0;
    uint32_t
        first[kCapacity + 1];  // the number of each tensor's first chunk; of all chunks at the end
    int64_t numel[kCapacity];
    char *data[kCapacity][P];
    bool is_packed[kCapacity];

    __device__ int tensor_of(uint32_t block) const
    {
        int low = 0, high = count;
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            if (first[middle] <= block)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
};

// ---- kernels -----------------------------------------------------------------------------------------------------------

template <class Op>
__device__ inline typename Op::Settled settle_once(const Op &op, char *const *data)
{
    if constexpr (std::is_empty_v<typename Op::Settled>) {
        return {};
    } else {
        YOKE_SHARED(typename Op::Settled, settled, 1);
        if (threadIdx.x == 0) settled[0] = op.settle(data);
        __syncthreads();
        return settled[0];
    }
}

template <class C, int W, class T>
__device__ inline void read_pack(const char *data, int64_t at, C (&x)[W])
{
    const Pack<T, W> pack = load_pack<W>((const T *)data + at);
    YOKE_UNROLL
    for (int k = 0; k < W; k++) x[k] = convert<C>(pack.at[k]);
}

template <class C, int W, class T>
__device__ inline void write_pack(char *data, int64_t at, const C (&x)[W])
{
    if (!data) return;
    Pack<T, W> pack;
    YOKE_UNROLL
    for (int k = 0; k < W; k++) pack.at[k] = convert<T>(x[k]);
    store_pack<W>((T *)data + at, pack);
}

// U packs of W elements, `step` apart: all are read before one is written, so that the reads wait together.
template <int U, int W, class Op, class... T, size_t... I>
__device__ inline void take(const Op &op, const typename Op::Settled &settled,
                            typename Op::Sum &sum, char *const (&data)[Op::kPointers], int64_t at,
                            int64_t step, Types<T...>, std::index_sequence<I...>)
{
    using C = typename Op::Compute;
    C x[U][Op::kOperands][W] = {};
    YOKE_UNROLL
    for (int u = 0; u < U; u++) {
        auto read = [&]<class S, int k>() {
            if constexpr (Op::kReads >> k & 1u) read_pack<C, W, S>(data[k], at + u * step, x[u][k]);
        };
        (read.template operator()<T, (int)I>(), ...);
    }
    YOKE_UNROLL
    for (int u = 0; u < U; u++) {
        YOKE_UNROLL
        for (int k = 0; k < W; k++) {
            C element[Op::kOperands] = {x[u][I][k]...};
            op(settled, element, sum);
            ((x[u][I][k] = element[I]), ...);
        }
        auto write = [&]<class S, int k>() {
            if constexpr (Op::kWrites >> k & 1u)
                write_pack<C, W, S>(data[k], at + u * step, x[u][k]);
        };
        (write.template operator()<T, (int)I>(), ...);
    }
}

template <class Op, class List, class... T>
__global__ void over_table(List table, Op op)
{
    constexpr int W = kPackLength<T...>, U = Op::kElements > W ? Op::kElements / W : 1;
    constexpr auto kIndices = std::index_sequence_for<T...>();
    if (op.is_skipped()) return;
    const int tensor = table.tensor_of(blockIdx.x), threads = (int)blockDim.x;
    const int64_t begin = (int64_t)(blockIdx.x - table.first[tensor]) * table.chunk,
                  n = min(table.chunk, table.numel[tensor] - begin),
                  packs = table.is_packed[tensor] ? n / W : 0;
    char *data[Op::kPointers];
    YOKE_UNROLL
    for (int k = 0; k < Op::kPointers; k++) data[k] = table.data[tensor][k];
    const auto settled = settle_once(op, data);
    typename Op::Sum sum{};
    int64_t pack = threadIdx.x;
    for (; pack + (U - 1) * threads < packs; pack += U * threads)
        take<U, W>(op, settled, sum, data, begin + pack * W, (int64_t)threads * W, Types<T...>(),
                   kIndices);
    for (; pack < packs; pack += threads)
        take<1, W>(op, settled, sum, data, begin + pack * W, 0, Types<T...>(), kIndices);
    for (int64_t i = packs * W + threadIdx.x; i < n; i += threads)
        take<1, 1>(op, settled, sum, data, begin + i, 0, Types<T...>(), kIndices);
    op.finish(sum);
}

#define YOKE_LOAD_CASE(value, type) \
    case value:                     \
        return convert<C>(*(const type *)place);
#define YOKE_STORE_CASE(value, type)       \
    case value:                            \
        *(type *)place = convert<type>(x); \
        return;

template <class C>
__device__ inline C load_as(yoke_dtype dtype, const char *place)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_LOAD_CASE)
    }
    return C(0);
}

template <class C>
__device__ inline void store_as(yoke_dtype dtype, char *place, C x)
{
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_STORE_CASE)
    }
}

#undef YOKE_LOAD_CASE
#undef YOKE_STORE_CASE

// One tensor as the general kernel takes it; absent operands walk with the first.
template <class Op>
struct Strided {
    Walk<Op::kOperands> walk;
    yoke_dtype dtype[Op::kOperands];
    char *data[Op::kPointers];
    int64_t chunk;
};

template <class Op>
__global__ void over_strided(Strided<Op> tensor, Op op)
{
    using C = typename Op::Compute;
    constexpr int N = Op::kOperands;
    if (op.is_skipped()) return;
    const auto settled = settle_once(op, tensor.data);
    typename Op::Sum sum{};
    const int64_t begin = blockIdx.x * tensor.chunk,
                  end = min(tensor.walk.numel, begin + tensor.chunk);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        const Place<N> place = tensor.walk.at(i);
        C x[N] = {};
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if (Op::kReads >> k & 1u) x[k] = load_as<C>(tensor.dtype[k], place.data[k]);
        op(settled, x, sum);
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if ((Op::kWrites >> k & 1u) && tensor.data[k])
                store_as<C>(tensor.dtype[k], place.data[k], x[k]);
    }
    op.finish(sum);
}

// ---- launches ------------------------------------------------------------------------------------------------------------

// Tensor i of every list: null operands are absent. `further` follows them in settle's data.
template <int N>
struct Item {
    const yoke_operand *operand[N];
    void *further = nullptr;
};

template <class T>
inline bool stores(const yoke_operand *operand)
{
    constexpr yoke_dtype kDtype = std::is_same_v<T, double> ? YOKE_F64
                                  : std::is_same_v<T, f16>  ? YOKE_F16
                                  : std::is_same_v<T, bf16> ? YOKE_BF16
                                                            : YOKE_F32;
    return !operand || operand->dtype == kDtype;
}

// One list; item(i) gives the i-th tensor, whose first operand decides what it is computed in. `is_left` tells the
// tensors that have not been taken yet.
template <class ItemOf>
struct List {
    const yoke_launch *launch;
    int64_t count, chunk;
    const ItemOf &item;
    std::vector<bool> is_left = std::vector<bool>((size_t)count);
    int64_t left = 0, blocks = 0;  // to be taken; started so far

    // Those that are computed in C are to be taken.
    template <class C>
    void choose()
    {
        left = 0;
        for (int64_t i = 0; i < count; i++) {
            const yoke_operand &first = *item(i).operand[0];
            const bool is_chosen = first.numel && (first.dtype == YOKE_F64) == (sizeof(C) == 8);
            is_left[(size_t)i] = is_chosen;
            left += is_chosen;
        }
    }
};

template <int N>
inline const yoke_operand *stand_in(const Item<N> &item, int k)
{
    return item.operand[k] ? item.operand[k] : item.operand[0];
}

template <int N, size_t... I>
inline Loop<N> loop_of(const Item<N> &item, std::index_sequence<I...>)
{
    Loop<N> loop;
    plan_loop<N>(loop, {stand_in(item, (int)I)...});
    return loop;
}

// Whether the operands are runs, the elements of which correspond.
template <int N>
inline bool is_dense(const Item<N> &item)
{
    bool all = true;
    int64_t sizes[N];
    for (int k = 0; k < N; k++) {
        all &= is_contiguous(*stand_in(item, k));
        sizes[k] = dtype_size(stand_in(item, k)->dtype);
    }
    return all || is_one_run<N>(loop_of(item, std::make_index_sequence<N>()), sizes);
}

template <int N, int P>
inline void set_pointers(const Item<N> &item, char *(&data)[P])
{
    for (int k = 0; k < N; k++)
        data[k] = item.operand[k] ? data_of<char>(*item.operand[k]) : nullptr;
    if (P > N) data[P - 1] = static_cast<char *>(item.further);
}

// Whether the item is stored as T and dense, and hence has been added to the table.
template <class... T, class Tensors, int N, size_t... I>
inline bool add(Tensors &table, const Item<N> &item, std::index_sequence<I...>)
{
    if (!(stores<T>(item.operand[I]) && ...) || !is_dense(item)) return false;
    constexpr int W = kPackLength<T...>;
    const int at = table.count++;
    table.numel[at] = item.operand[0]->numel;
    table.first[at + 1] =
        table.first[at] + (uint32_t)divide_up(item.operand[0]->numel, table.chunk);
    set_pointers(item, table.data[at]);
    table.is_packed[at] = (is_aligned(table.data[at][I], W * (int64_t)sizeof(T)) && ...);
    return true;
}

template <class... T, class Tensors, class Op, class ItemOf>
inline yoke_status flush(List<ItemOf> &list, Tensors &table, Op &op)
{
    const int64_t blocks = table.first[table.count];
    op.starts_at(list.blocks);
    list.blocks += blocks;
    const yoke_status status = start(list.launch, over_table<Op, Tensors, T...>,
                                     {blocks, block_size(kThreads)}, table, op);
    table.count = 0;
    return status;
}

template <class Tensors, class Op, class ItemOf, class... T>
inline yoke_status start_tables(List<ItemOf> &list, Op &op, Types<T...>)
{
    static_assert(sizeof(Tensors) + kOpBytes <= kManyBytes && sizeof(Op) <= kOpBytes);
    Tensors table;
    table.chunk = list.chunk;
    table.first[0] = 0;
    for (size_t i = 0; i < list.is_left.size() && list.left; i++) {
        if (!list.is_left[i] ||
            !add<T...>(table, list.item((int64_t)i), std::index_sequence_for<T...>()))
            continue;
        list.is_left[i] = false;
        list.left--;
        if (table.count == Tensors::kCapacity)
            if (yoke_status status = flush<T...>(list, table, op)) return status;
    }
    return table.count ? flush<T...>(list, table, op) : (yoke_status)YOKE_OK;
}

// Those stored as T: one launch, or several where the table overflows.
template <class Op, class ItemOf, class... T>
inline yoke_status start_stored(List<ItemOf> &list, Op &op, Types<T...> types)
{
    static_assert(sizeof...(T) == Op::kOperands);
    using Few = Table<Op::kPointers, kFewBytes>;
    using Many = Table<Op::kPointers, kManyBytes>;
    if (list.left == 0) return YOKE_OK;
    if constexpr (sizeof(typename Op::Compute) == 4)
        if (list.left > Few::kCapacity) return start_tables<Many>(list, op, types);
    return start_tables<Few>(list, op, types);
}

// A launch for each of those that no table took.
template <class Op, class ItemOf>
inline yoke_status start_strided(List<ItemOf> &list, Op &op)
{
    constexpr int N = Op::kOperands;
    for (size_t i = 0; i < list.is_left.size() && list.left; i++) {
        if (!list.is_left[i]) continue;
        const Item<N> item = list.item((int64_t)i);
        Strided<Op> tensor{
            Walk<N>(loop_of(item, std::make_index_sequence<N>())), {}, {}, list.chunk};
        for (int k = 0; k < N; k++) tensor.dtype[k] = stand_in(item, k)->dtype;
        set_pointers(item, tensor.data);
        const int64_t blocks = divide_up(tensor.walk.numel, list.chunk);
        op.starts_at(list.blocks);
        list.blocks += blocks;
        if (yoke_status status =
                start(list.launch, over_strided<Op>, {blocks, block_size(kThreads)}, tensor, op))
            return status;
        list.left--;
    }
    return YOKE_OK;
}

template <class T, size_t>
using Same = T;

template <class T, size_t... I>
Types<Same<T, I>...> types_alike(std::index_sequence<I...>);

template <class T, int N>
using Alike = decltype(types_alike<T>(std::make_index_sequence<N>()));

template <class... Kinds, class Op, class ItemOf>
inline yoke_status start_kinds(List<ItemOf> &list, Op op)
{
    list.template choose<typename Op::Compute>();
    yoke_status status = YOKE_OK;
    ((status = status ? status : start_stored(list, op, Kinds())), ...);
    return status ? status : start_strided(list, op);
}

// Op over a list: make.operator()<C>() gives the one that computes in C. Operands of one dtype, and those stored as the
// Mixed types, take tables.
template <template <class> class Op, class... Mixed, class ItemOf, class Make>
inline yoke_status over_list(const yoke_launch *launch, int64_t count, int64_t chunk,
                             const ItemOf &item, const Make &make)
{
    constexpr int N = Op<float>::kOperands;
    List<ItemOf> list{launch, count, chunk, item};
    const yoke_status status =
        start_kinds<Alike<float, N>, Mixed..., Alike<bf16, N>, Alike<f16, N>>(
            list, Op<float>(make.template operator()<float>()));
    return status ? status
                  : start_kinds<Alike<double, N>>(list,
                                                  Op<double>(make.template operator()<double>()));
}

YOKE_CUDA_END
