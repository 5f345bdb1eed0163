// Common parts of losses of classes: the targets, and logits and their gradients as rows. loss_sum.cuh adds up
// losses.
//
// An invalid target is reported, and its row adds 0.
#pragma once

#include "core/backend/ops.inc"
#include "kernels/common/loss.h"
#include "kernels/common/named.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

// Classes of the rows, for both directions.
struct Targets {
    const char *data;
    int64_t step;  // bytes
    bool wide;     // int64, not int32
    int64_t count, classes, ignored;
    Reporter reporter;

    __device__ int64_t at(int64_t row) const
    {
        const char *place = data + row * step;
        return wide ? *reinterpret_cast<const int64_t *>(place)
                    : (int64_t) * reinterpret_cast<const int32_t *>(place);
    }
    // Returns the class of a row, or -1 if the class is ignored or invalid. If `tells`, an invalid class is reported.
    __device__ int64_t class_of(int64_t row, bool tells) const
    {
        const int64_t index = at(row);
        if (index == ignored) return -1;
        if (index >= 0 && index < classes) return index;
        if (tells) report(reporter, row, index, classes - 1);
        return -1;
    }
};

// The arguments of a call.
struct Call {
    Targets targets;
    kernels::LossReduction reduction;

    Call(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &target, int32_t op)
        : targets{data_of<const char>(target),
                  target.ndim ? target.strides[0] * dtype_size(target.dtype) : 0,
                  target.dtype == YOKE_I64,
                  x.shape[0],
                  x.shape[1],
                  launch->params[1].v.i,
                  reporter(
                      launch,
                      "%s: target[%lld] is %lld, which is not a class of x: use 0 to %lld, or ignore_index")},
          reduction(launch->params[0])
    {
        targets.reporter.op = op;
    }
};

inline yoke_status check_target(const yoke_launch *launch, const yoke_operand &target)
{
    if (target.dtype == YOKE_I64 || target.dtype == YOKE_I32) return YOKE_OK;
    return bad_dtype(launch, "target", target.dtype);
}

// ---- logits and their gradients ----------------------------------------------------------------------------------

// Rows of one value for each class.
template <class T>
struct ClassRows {
    static constexpr int V = kPackLength<T>;
    T *data;
    int64_t row_step, step, count;  // elements

    explicit ClassRows(const yoke_operand &x)
        : data(data_of<T>(x)), row_step(x.strides[0]), step(x.strides[1]), count(x.shape[1])
    {
    }
    __device__ T *row(int64_t i) const { return data + i * row_step; }
    // Returns the elements from the last boundary of 16 bytes to a row, or 0 if the row is not dense. Packs begin at
    // the boundary, so all except a row's ends are whole.
    __device__ int skew(int64_t i) const
    {
        return step == 1 ? (int)((uintptr_t)row(i) / sizeof(T) % V) : 0;
    }
    __device__ compute_type<T> at(int64_t i, int64_t index) const
    {
        return widen<T>(row(i)[index * step]);
    }
};

// Row in packs of V elements; a pack begins at -skew. Elements of a pack outside the row are loaded as `beyond`, and
// are not stored.
template <class T>
struct ClassRow {
    static constexpr int V = kPackLength<T>;
    using Raw = WordPack<T, V>;  // for a single access: all loads come before the first use
    T *data;
    int64_t step, count;
    bool aligned;

    __device__ ClassRow(const ClassRows<T> &rows, int64_t row, int skew)
        : data(rows.row(row)),
          step(rows.step),
          count(rows.count),
          aligned(rows.step == 1 && rows.skew(row) == skew)
    {
    }
    __device__ bool has(int64_t i) const { return i >= 0 && i < count; }
    __device__ bool is_whole(int64_t i) const { return aligned && i >= 0 && i + V <= count; }

    __device__ Raw load(int64_t i, compute_type<T> beyond) const
    {
        if (is_whole(i)) return load_pack<kWords<T, V>>(as_words<T, V>(data + i));
        T each[V];
        YOKE_UNROLL
        for (int k = 0; k < V; k++)
            each[k] = has(i + k) ? data[(i + k) * step] : convert<T>(beyond);
        Raw raw;
        memcpy(&raw, each, sizeof raw);
        return raw;
    }
    __device__ static void unpack(const Raw &raw, compute_type<T> (&to)[V])
    {
        if constexpr (is_half<T>) {
            YOKE_UNROLL
            for (int k = 0; k < V; k += 2) widen_pair<T>(raw.at[k / 2], to + k);
        } else {
            memcpy(to, &raw, sizeof raw);
        }
    }
    __device__ void put(int64_t i, const compute_type<T> (&x)[V]) const
    {
        T each[V];
        narrow_all<T>(x, each);
        if (is_whole(i)) {
            Raw raw;
            memcpy(&raw, each, sizeof raw);
            return store_pack<kWords<T, V>>(as_words<T, V>(data + i), raw);
        }
        YOKE_UNROLL
        for (int k = 0; k < V; k++)
            if (has(i + k)) data[(i + k) * step] = each[k];
    }
};

// Gradient of each row's loss, and its divisor.
template <class T>
struct Upstream {
    const T *grad;
    int64_t step;                    // elements; 0 where one number stands for all rows
    const compute_type<T> *divisor;  // null for 1

    Upstream(const yoke_operand &g, const yoke_operand &used, bool mean)
        : grad(data_of<const T>(g)),
          step(g.ndim ? g.strides[0] : 0),
          divisor(mean ? data_of<const compute_type<T>>(used) : nullptr)
    {
    }
    __device__ compute_type<T> at(int64_t row) const
    {
        return widen<T>(grad[row * step]) / (divisor ? *divisor : (compute_type<T>)1);
    }
};

// Returns how threads share a row: a group of warp lanes, a power of two, for short rows; all threads of a block for
// longer rows.
inline Sharing share_classes(int64_t classes, int64_t at_once)
{
    if (classes <= at_once * 4 * kWarp) {
        int group = 1;
        while (group < kWarp && group * at_once < classes) group *= 2;
        return {0, group, block_size(128), true};
    }
    const int threads = block_size(classes <= at_once * 4 * kThreads ? 128 : kThreads);
    return {0, threads, threads, true};
}

YOKE_CUDA_END
