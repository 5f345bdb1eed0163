// What losses of classes share: the targets, the logits and their gradients as rows, and the sum of the rows' losses.
//
// A target that is no class is reported, and its row adds nothing.
#pragma once

#include "core/backend/ops.inc"
#include "kernels/common/loss.h"
#include "kernels/common/named.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

// What both directions know of the rows' classes.
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
    // The class of a row; -1 where it has none, which `tells` reports.
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
                      "%s: target[%lld] is %lld, which is no class of x: use 0 to %lld, or ignore_index")},
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

inline bool is_packed(const yoke_operand &x)
{
    const int64_t size = dtype_size(x.dtype);
    return x.strides[1] == 1 && x.shape[1] * size % 16 == 0 && x.strides[0] * size % 16 == 0 &&
           is_aligned(x.data, 16);
}

// ---- the sum of rows' losses --------------------------------------------------------------------------------------

// The losses (those of rows that count; null where nobody adds them up) to one number, and how many rows count. One
// block.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    finish_loss(const compute_type<T> *losses, Targets targets, bool mean, T *loss,
                compute_type<T> *used)
{
    using C = compute_type<T>;
    C sum = (C)0;
    int64_t count = 0;
    for (int64_t row = threadIdx.x; row < targets.count; row += blockDim.x) {
        count += targets.at(row) != targets.ignored;
        if (losses) sum += losses[row];
    }
    count = reduce_block(count, (int64_t)0, [](int64_t a, int64_t b) { return a + b; });
    sum = reduce_block(sum, (C)0, [](C a, C b) { return a + b; });
    if (threadIdx.x > 0) return;
    *used = (C)count;
    if (losses) *loss = store<T>(mean ? sum / (C)count : sum);
}

template <class T>
inline yoke_status start_finish(const yoke_launch *launch, const Call &call,
                                const compute_type<T> *losses, const yoke_operand &loss,
                                const yoke_operand &used)
{
    return start(launch, finish_loss<T>, {1, block_size(kMostThreads)}, losses, call.targets,
                 call.reduction.mean, data_of<T>(loss), data_of<compute_type<T>>(used));
}

// Where a row's loss goes: to scratch, as it was computed, or to the result.
template <class T>
struct LossPlace {
    compute_type<T> *losses;
    T *out;

    __device__ void put(int64_t row, compute_type<T> loss) const
    {
        if (losses)
            losses[row] = loss;
        else
            out[row] = store<T>(loss);
    }
};

// ---- logits and gradients ----------------------------------------------------------------------------------------

// The logits as the kernels read them.
template <class T>
struct Logits {
    const T *data;
    int64_t row_step, step, count;  // elements
    bool packed;

    explicit Logits(const yoke_operand &x)
        : data(data_of<const T>(x)),
          row_step(x.strides[0]),
          step(x.strides[1]),
          count(x.shape[1]),
          packed(is_packed(x))
    {
    }
    // N logits of a row from class i on; -infinity behind the end.
    template <int N>
    __device__ void load(int64_t row, int64_t i, compute_type<T> (&to)[N]) const
    {
        const T *from = data + row * row_step;
        if (packed && i < count) return unpack<T, N>(load_pack<N>(from + i), to);
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            to[k] = i + k < count ? widen<T>(from[(i + k) * step])
                                  : -(compute_type<T>)kernels::kInfinity;
    }
    __device__ compute_type<T> at(int64_t row, int64_t i) const
    {
        return widen<T>(data[row * row_step + i * step]);
    }
};

// The gradient of each row's loss, and what it is divided by.
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

template <class T>
struct Gradients {
    T *data;
    int64_t row_step, step, count;
    bool packed;

    explicit Gradients(const yoke_operand &dx)
        : data(data_of<T>(dx)),
          row_step(dx.strides[0]),
          step(dx.strides[1]),
          count(dx.shape[1]),
          packed(is_packed(dx))
    {
    }
    template <int N>
    __device__ void put(int64_t row, int64_t i, const compute_type<T> (&x)[N]) const
    {
        T *to = data + row * row_step;
        const Pack<T, N> pack = pack_of<T, N>(x);
        if (packed) return store_pack<N>(to + i, pack);
        YOKE_UNROLL
        for (int k = 0; k < N; k++)
            if (i + k < count) to[(i + k) * step] = pack.at[k];
    }
};

// A group of warp lanes for short rows, of a power of two; all threads of a block for longer ones.
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
