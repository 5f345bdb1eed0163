// Work over the tensors of a list in one launch.
//
// Contract
//  * Op is an operation of tensor_table.cuh.
//  * Dense tensors of one of several kinds share a table of their kind, in packs if aligned. Other tensors, of any
//    strides and dtypes, take a launch each.
//  * Chunks depend on the sizes only, and so do sums over chunks.
#pragma once

#include "kernels/common/optim_group.h"
#include "kernels/cuda/ops/tensor_table.cuh"

YOKE_CUDA_BEGIN

// Returns how many elements a block takes. The number gives enough blocks to keep a device busy, and each block
// enough work to be worth its start.
inline int64_t chunk_of(int64_t total)
{
    return max(4096, divide_up(divide_up(total, 8192), 1024) * 1024);
}

using kernels::total_numel;

// Tensor i of every list: null operands are absent. `further` follows them in settle's data.
template <int N>
struct Item {
    const yoke_operand *operand[N];
    void *further = nullptr;
};

// List of items; item(i) gives the i-th tensor. The tensor's first operand decides the computing type.
template <class ItemOf>
struct List {
    const yoke_launch *launch;
    int64_t count, chunk;
    const ItemOf &item;
    int64_t left = 0, blocks = 0;  // tensors to be taken yet; blocks started so far
};

// Returns whether the item has elements and is computed in C.
template <class C, int N>
inline bool is_computed_in(const Item<N> &item)
{
    const yoke_operand &first = *item.operand[0];
    return first.numel && (first.dtype == YOKE_F64) == std::is_same_v<C, double>;
}

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

// Returns whether the operands are runs with corresponding elements.
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

template <int N>
inline bool is_of_kind(const Item<N> &item, const Kind<N> &kind)
{
    for (int k = 0; k < N; k++)
        if (item.operand[k] && item.operand[k]->dtype != kind.dtype[k]) return false;
    return true;
}

// Sets the dtypes and sizes of a kind, for packs of n elements.
template <class Tensors, int N>
inline void begin_table(Tensors &table, const Kind<N> &kind, int64_t n)
{
    int64_t widest = 1;
    for (int k = 0; k < N; k++) {
        table.dtype[k] = kind.dtype[k];
        table.size[k] = (int)dtype_size(kind.dtype[k]);
        widest = max(widest, table.size[k]);
    }
    table.apart = widest * n <= 16 ? n / 2 : halves_apart(n);
    table.first[0] = 0;
}

template <class Tensors, int N>
inline void add(Tensors &table, const Item<N> &item, int64_t n)
{
    const int at = table.count++;
    const int64_t numel = item.operand[0]->numel;
    table.numel[at] = numel;
    table.first[at + 1] = table.first[at] + (uint32_t)divide_up(numel, table.chunk);
    set_pointers(item, table.data[at]);
    table.is_packed[at] = true;
    for (int k = 0; k < N; k++)
        table.is_packed[at] &= is_aligned(table.data[at][k], pack_bytes(n, table.size[k]));
}

template <class Tensors, class Op, class ItemOf>
inline yoke_status flush(List<ItemOf> &list, Tensors &table, Op &op)
{
    const int64_t blocks = table.first[table.count];
    op.starts_at(list.blocks);
    list.blocks += blocks;
    const yoke_status status =
        start(list.launch, over_table<Op, Tensors>, {blocks, block_size(kThreads)}, table, op);
    table.count = 0;
    return status;
}

template <class Tensors, class Op, class ItemOf>
inline yoke_status start_tables(List<ItemOf> &list, Op &op, const Kind<Op::kOperands> &kind)
{
    static_assert(sizeof(Tensors) + kOpBytes <= Tensors::kBytes && sizeof(Op) <= kOpBytes);
    constexpr int N = kAtOnce<typename Op::Compute>;
    Tensors table{};  // cleared, so a launch has no addresses of an earlier launch
    table.chunk = list.chunk;
    begin_table(table, kind, N);
    for (int64_t i = 0; i < list.count && list.left; i++) {
        const Item<Op::kOperands> item = list.item(i);
        if (!is_computed_in<typename Op::Compute>(item) || !is_of_kind(item, kind) ||
            !is_dense(item))
            continue;
        add(table, item, N);
        list.left--;
        if (table.count == Tensors::kCapacity)
            if (yoke_status status = flush(list, table, op)) return status;
    }
    return table.count ? flush(list, table, op) : (yoke_status)YOKE_OK;
}

// Starts the tensors of a kind: in one launch, or in several if the table overflows.
template <class Op, class ItemOf>
inline yoke_status start_kind(List<ItemOf> &list, Op &op, const Kind<Op::kOperands> &kind)
{
    using Few = Table<Op::kPointers, kFewBytes>;
    using Many = Table<Op::kPointers, kManyBytes>;
    if (list.left == 0) return YOKE_OK;
    if constexpr (sizeof(typename Op::Compute) == 4)
        if (list.left > Few::kCapacity) return start_tables<Many>(list, op, kind);
    return start_tables<Few>(list, op, kind);
}

// Starts a launch for each tensor that no table took.
template <class Op, class ItemOf>
inline yoke_status start_strided(List<ItemOf> &list, Op &op, const Kind<Op::kOperands> *kinds,
                                 int kind_count)
{
    constexpr int N = Op::kOperands;
    constexpr auto kIndices = std::make_index_sequence<N>();
    for (int64_t i = 0; i < list.count && list.left; i++) {
        const Item<N> item = list.item(i);
        bool is_of_any = false;
        for (int k = 0; k < kind_count; k++) is_of_any |= is_of_kind(item, kinds[k]);
        if (!is_computed_in<typename Op::Compute>(item) || (is_of_any && is_dense(item))) continue;
        Strided<Op> tensor{Walk<N>(loop_of(item, kIndices)), {}, {}, list.chunk};
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

template <int N>
inline Kind<N> all_of(yoke_dtype dtype)
{
    Kind<N> kind;
    for (yoke_dtype &one : kind.dtype) one = dtype;
    return kind;
}

template <class Op, class ItemOf, int kCount>
inline yoke_status start_kinds(List<ItemOf> &list, Op op,
                               const Kind<Op::kOperands> (&kinds)[kCount])
{
    list.left = 0;
    for (int64_t i = 0; i < list.count; i++)
        list.left += is_computed_in<typename Op::Compute>(list.item(i));
    for (const auto &kind : kinds)
        if (yoke_status status = start_kind(list, op, kind)) return status;
    return start_strided(list, op, kinds, kCount);
}

// Runs Op over a list. make.operator()<C>() gives the op that computes in C. Operands of a single dtype, and operands
// of the mixed kinds, use tables.
template <template <class> class Op, class ItemOf, class Make, class... Mixed>
inline yoke_status over_list(const yoke_launch *launch, int64_t count, int64_t chunk,
                             const ItemOf &item, const Make &make, const Mixed &...mixed)
{
    constexpr int N = Op<float>::kOperands;
    List<ItemOf> list{launch, count, chunk, item};
    const Kind<N> floats[] = {all_of<N>(YOKE_F32), mixed..., all_of<N>(YOKE_BF16),
                              all_of<N>(YOKE_F16)};
    const Kind<N> doubles[] = {all_of<N>(YOKE_F64)};
    if (yoke_status status =
            start_kinds(list, Op<float>(make.template operator()<float>()), floats))
        return status;
    return start_kinds(list, Op<double>(make.template operator()<double>()), doubles);
}

YOKE_CUDA_END
