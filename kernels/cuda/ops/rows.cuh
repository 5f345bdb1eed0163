// Rows of tensors of any strides, in the registers of threads that share the rows.
//
// Contract
//  * A group shares a row: a power of two of neighbouring warp lanes, or all threads of a block. Each thread has
//    packs of 16 bytes, a group apart. The packs of a thread depend on the row's length, never on the number of rows.
//    So do the bits of a sum.
//  * Dense rows on 16-byte boundaries are read and written by the pack, other rows by the element.
//  * Rows longer than a group's registers are read in chunks, once for the sums and once for the result.
//
// Example: softmax over rows of 100 floats, dense, on 16-byte boundaries.
//  1. share_rows(): a thread has kFew = 8 elements, in 2 packs of 4. The smallest group with 100 elements has 16
//     threads, so 16 warp lanes share a row. A block of 128 threads has 8 rows.
//  2. Member: thread 21 of a block is in group number() = 21 / 16 = 1, at in_group = 21 % 16 = 5. So the thread works
//     on the block's second row.
//  3. Member::pack(): its packs begin at (0 * 16 + 5) * 4 = 20 and (1 * 16 + 5) * 4 = 84. So it has elements 20 to 23
//     and 84 to 87. Its neighbour has 24 to 27 and 88 to 91, so each load of the group is a run.
//  4. Chunk::load_or() loads both packs. Threads 9 to 15 of the group would begin their second pack at 100 or later.
//     Instead they get a pack of -infinity, which does not change the maximum, and adds 0 to the sum of exp().
//  5. Chunk::take_all() converts the packs to 8 values x.
//  6. The thread takes its largest x. reduce_group() exchanges values between lanes at distances 8, 4, 2 and 1. Then
//     each of the 16 threads has the row's maximum.
//  7. x becomes exp(x - maximum). sum_group() adds in the same way, and x is divided by the sum.
//  8. Chunk::put() stores elements 20 to 23 and 84 to 87. Threads 9 to 15 store only their first pack.
// A row of 10,000 such floats has 320 threads with kMany = 32 elements each: the row still fits the block's
// registers. If such a row is not on 16-byte boundaries, a thread holds at most 8 elements, so the block reads
// chunks.
#pragma once

#include "kernels/common/axis_rows.h"
#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

constexpr int kMostThreads = 512;  // in a block with a shared row: each may have 128 registers

// N operands of one shape. In each operand, a row lies along an axis.
template <int N>
struct Rows {
    Walk<N> outer;
    int64_t count, length;
    int64_t step[N];        // bytes from an element of a row to the next
    int dtype[N], size[N];  // for an element
    bool packed[N];
    bool all_packed;

    Rows(const Loop<N> &rows, const Loop<N> &elements, const yoke_operand *const (&operands)[N])
        : outer(rows), count(rows.numel), length(elements.numel), all_packed(true)
    {
        for (int i = 0; i < N; i++) {
            dtype[i] = operands[i]->dtype;
            size[i] = (int)dtype_size(operands[i]->dtype);
            step[i] = elements.stride[0][i];
            packed[i] =
                step[i] == size[i] && length * size[i] % 16 == 0 && is_aligned(rows.data[i], 16);
            for (int axis = 0; axis < rows.ndim; axis++)
                packed[i] = packed[i] && rows.stride[axis][i] % 16 == 0;
            all_packed = all_packed && packed[i];
        }
    }
    __device__ char *at(char *row, int i, int64_t element) const { return row + element * step[i]; }
    // Returns where a row begins, in the operands with a bit in kWhich. Other operands stay at their start. Mostly
    // rows lie evenly.
    template <unsigned kWhich = ~0u>
    __device__ Place<N> place(int64_t row) const
    {
        int64_t offset[N];
        YOKE_UNROLL
        for (int i = 0; i < N; i++) offset[i] = kWhich >> i & 1 ? row * outer.stride[0][i] : 0;
        if (outer.ndim > 1) {
            const Place<N> place = outer.template at<kWhich>(row);
            YOKE_UNROLL
            for (int i = 0; i < N; i++) offset[i] = place.data[i] - outer.data[i];
        }
        Place<N> place;
        YOKE_UNROLL
        for (int i = 0; i < N; i++) place.data[i] = outer.data[i] + offset[i];
        return place;
    }
};

// Makes rows along one axis, numbered in memory order.
template <int N>
inline Rows<N> along_axis(const yoke_operand *const (&operands)[N], int axis)
{
    const kernels::AxisRows<N> rows(operands, axis);
    Loop<N> inner;
    kernels::begin_loop<N>(inner, operands);
    add_axis<N>(inner, rows.length, rows.step);
    finish_loop<N>(inner);
    return Rows<N>(rows.outer, inner, operands);
}

// Makes rows over the axes from `axis` on, numbered row-major; the other operands broadcast to the first. Each
// operand must lie along a single line in these axes (is_line).
template <int N>
inline Rows<N> last_axes(const yoke_operand *const (&operands)[N], int axis)
{
    Loop<N> outer, inner;
    kernels::plan_ordered<N>(outer, operands, 0, axis);
    kernels::plan_ordered<N>(inner, operands, axis, operands[0]->ndim);
    return Rows<N>(outer, inner, operands);
}

// Returns whether the elements of an operand's axes from `axis` on have equal distances, in row-major order.
inline bool is_line(const yoke_operand &operand, int axis)
{
    int64_t next = 0;
    for (int a = operand.ndim - 1; a >= axis; a--) {
        if (operand.shape[a] == 1) continue;
        if (next && operand.strides[a] != next) return false;
        next = operand.strides[a] * operand.shape[a];
    }
    return true;
}

// ---- groups -----------------------------------------------------------------------------------------------------

// Number of a row's elements in a thread. With few elements, many threads hide each other's waiting; with many
// elements, a block holds a long row. f64 has few only.
template <class In>
inline constexpr int kFew = 32 / In::kSizes;
template <class In>
inline constexpr int kMany = In::kSizes == 8 ? kFew<In> : 32;

// Division of rows of a length among threads.
struct Sharing {
    int elements;   // a thread's elements of a row: kFew or kMany
    int group;      // threads of a row
    int threads;    // threads of a block
    bool resident;  // the group holds the whole row

    int64_t rows_a_block() const { return threads / group; }
};

// Returns how rows are shared. `packed` is whether all operands are packed: only such rows are held by threads with
// many elements.
template <class In>
inline Sharing share_rows(int64_t length, bool packed)
{
    if (length <= kFew<In> * kWarp) {
        int group = 1;
        while (group * kFew<In> < length) group *= 2;
        return {kFew<In>, group, block_size(128), true};
    }
    const bool many = packed && length > kFew<In> * kMostThreads;
    const int elements = many ? kMany<In> : kFew<In>;
    const int64_t wanted = divide_up(length, elements * kWarp) * kWarp;
    const int threads = block_size((int)min(wanted, kMostThreads));
    return {elements, threads, threads, length <= (int64_t)elements * threads};
}

inline Grid row_grid(const yoke_launch *launch, int64_t count, const Sharing &sharing)
{
    return {blocks_for(launch, count, sharing.rows_a_block()), sharing.threads};
}

// Calls f.operator()<kElements, kPacked>() for a sharing. Many elements are for packed rows only.
template <class In, class F>
inline yoke_status for_sharing(const Sharing &sharing, bool packed, const F &f)
{
    if constexpr (kMany<In> != kFew<In>)
        if (sharing.elements == kMany<In>) return f.template operator()<kMany<In>, true>();
    return packed ? f.template operator()<kFew<In>, true>()
                  : f.template operator()<kFew<In>, false>();
}

// Combines values over the threads of a group. If combine commutes, every thread gets the result, else the first
// thread. `nothing` leaves the other argument of combine unchanged.
template <class S, class F>
__device__ inline S reduce_group(S value, int group, const S &nothing, const F &combine)
{
    if (group > kWarp) return reduce_block(value, nothing, combine);
    for (int distance = group / 2; distance > 0; distance /= 2)
        value = combine(value, shuffle_xor(value, distance));
    return value;
}

struct AddUp {
    template <class S>
    __device__ S operator()(S a, S b) const
    {
        return a + b;
    }
};

template <class C>
__device__ inline C sum_group(C value, int group)
{
    return reduce_group(value, group, (C)0, AddUp());
}

// ---- elements ---------------------------------------------------------------------------------------------------

// Place of a thread in its group, of the group among the block's, and of the thread's elements in a chunk of a row.
struct Member {
    int group, in_group;

    __device__ explicit Member(int of)
        : group(of), in_group((int)threadIdx.x & (of > kWarp ? ~0 : of - 1))
    {
    }
    // Returns the group's number in its block. Groups of a grid are fewer than 2^31 (row_grid).
    __device__ int number() const { return is_block() ? 0 : (int)threadIdx.x >> bits(); }
    // Returns the number of groups in a block.
    __device__ unsigned groups() const { return is_block() ? 1 : blockDim.x >> bits(); }

private:
    __device__ bool is_block() const { return group > kWarp; }
    // Returns the binary logarithm of the group's size, a power of two: a division would take some twenty
    // instructions.
    __device__ int bits() const { return __popc((unsigned)group - 1); }

public:
    // Returns the first element of the thread's pack `p`.
    template <int V>
    __device__ int pack(int p) const
    {
        return (p * group + in_group) * V;
    }
};

// Elements of 16 bytes.
template <class In>
inline constexpr int kRowPack = 16 / In::kSizes;

// A thread's elements of a row, as they are stored.
template <class In, int E, int V = kRowPack<In>>
struct Held {
    Stored<In, V> packs[E / V];

    // Keeps later unpacking in place. Without this, the compiler unpacks ahead of a loop, where values take twice the
    // registers.
    __device__ void stay_packed()
    {
#if defined(__CUDA_ARCH__)
        YOKE_UNROLL
        for (Stored<In, V> &pack : packs) YOKE_UNROLL
        for (unsigned &word : pack.words) asm volatile("" : "+r"(word));
#endif
    }
};

// Chunk of a row, as seen by a thread with E elements. If kPacked, every operand's rows are known to be packed. If an
// operand is narrower than the operands with packs of 16 bytes, its packs also have V elements.
template <class In, int E, bool kPacked, int V = kRowPack<In>>
struct Chunk {
    using C = typename In::Value;
    char *data;
    int64_t step;
    int left;  // elements up to the end of the row; 2^30 stands for more
    int dtype, size;
    bool packed;

    // Makes a chunk of operand i, from element `first` on.
    template <int N>
    __device__ Chunk(const Rows<N> &rows, int i, char *row, int64_t first)
        : data(row + first * rows.step[i]),
          step(rows.step[i]),
          left((int)min(rows.length - first, 1 << 30)),
          dtype(rows.dtype[i]),
          size(rows.size[i]),
          packed(rows.packed[i])
    {
    }

    // Loads V elements from element `i` on, in stored form. Does not load packs beyond the end, or operands that are
    // not packed.
    __device__ void load(int i, Stored<In, V> &to) const
    {
        if ((kPacked || packed) && i < left) to.load(data, size, i, V / 2);
    }
    // Loads all packs of a packed operand. A pack beyond the end is filled with `beyond`, -infinity or 0, so
    // take_pack() needs no check.
    __device__ void load_or(const Member &member, C beyond, Held<In, E, V> &x) const
    {
        if (!kPacked && !packed) return;
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            x.packs[p].fill(dtype, beyond);
            load(member.pack<V>(p), x.packs[p]);
        }
    }
    __device__ void take_pack(const Member &member, int p, const Held<In, E, V> &held, C beyond,
                              C (&x)[V]) const
    {
        if (kPacked || packed)
            held.packs[p].unpack(dtype, x);
        else
            take(member.pack<V>(p), held.packs[p], beyond, x);
    }
    __device__ void take_all(const Member &member, const Held<In, E, V> &held, C beyond,
                             C (&x)[E]) const
    {
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            C pack[V];
            take_pack(member, p, held, beyond, pack);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) x[p * V + k] = pack[k];
        }
    }
    // Takes elements as values: loaded elements of a packed operand, else elements in memory. Elements beyond the end
    // become `beyond`.
    __device__ void take(int i, const Stored<In, V> &stored, C beyond, C (&x)[V]) const
    {
        if (kPacked || packed) {
            if (i < left) return stored.unpack(dtype, x);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) x[k] = beyond;
        } else if constexpr (!kPacked) {
            YOKE_UNROLL
            for (int k = 0; k < V; k++)
                x[k] = i + k < left ? value_at<In>(data + (i + k) * step, dtype, size) : beyond;
        }
    }
    __device__ void take(int i, C beyond, C (&x)[V]) const
    {
        Stored<In, V> stored{};
        load(i, stored);
        take(i, stored, beyond, x);
    }
    __device__ void put(int i, const C (&x)[V]) const
    {
        if (kPacked || packed) {
            if (i < left) put_run<In>(data, dtype, i, V / 2, x);
        } else if constexpr (!kPacked) {
            YOKE_UNROLL
            for (int k = 0; k < V; k++)
                if (i + k < left) put_one<In>(dtype, data + (i + k) * step, x[k]);
        }
    }

    // Loads all of a thread's elements before any is used, so no load waits for another.
    __device__ void load(const Member &member, Held<In, E, V> &x) const
    {
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) load(member.pack<V>(p), x.packs[p]);
    }
    __device__ void take(const Member &member, const Held<In, E, V> &held, C beyond,
                         C (&x)[E]) const
    {
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            C pack[V];
            take(member.pack<V>(p), held.packs[p], beyond, pack);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) x[p * V + k] = pack[k];
        }
    }
    __device__ void put(const Member &member, const C (&x)[E]) const
    {
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            C pack[V];
            YOKE_UNROLL
            for (int k = 0; k < V; k++) pack[k] = x[p * V + k];
            put(member.pack<V>(p), pack);
        }
    }
};

YOKE_CUDA_END
