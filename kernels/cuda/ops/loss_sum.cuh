// The sum of rows' losses, and how many rows count.
#pragma once

#include "kernels/common/reduce.h"
#include "kernels/cuda/ops/classes.cuh"

YOKE_CUDA_BEGIN

// Place of rows' losses: scratch, for losses as computed, or else the result.
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

template <class C>
struct LossPart {
    typename kernels::FloatSum<C>::State sum;
    int64_t used;  // rows that count

    __device__ static LossPart init() { return {kernels::FloatSum<C>().init(), 0}; }
    __device__ static LossPart combine(const LossPart &a, const LossPart &b)
    {
        return {kernels::FloatSum<C>().combine(a.sum, b.sum), a.used + b.used};
    }
};

// Result of all parts, as stored: a loss (unless rows keep their losses), and the number of rows.
template <class T>
struct WholeLoss {
    using C = compute_type<T>;
    T *loss;
    C *used;
    bool mean, keeps_rows;

    __device__ void put(const LossPart<C> &all) const
    {
        *used = (C)all.used;
        if (!keeps_rows)
            *loss = convert<T>(kernels::FloatSum<C>().mean(all.sum, mean ? (double)all.used : 1.0));
    }
};

// Rows of a block. The number is fixed, so the sum's bits depend on the rows only, not on the device.
constexpr int64_t kRowsAPart = 8192;

// Adds the losses of each block's rows, and counts the rows that are not ignored. A single block writes the whole
// result. If rows keep their losses, `losses` is null.
template <class T, class C = compute_type<T>>
__global__ void __launch_bounds__(kMostThreads)
    add_losses(const C *losses, Targets targets, LossPart<C> *parts, WholeLoss<T> whole)
{
    const kernels::FloatSum<C> add;
    LossPart<C> part = LossPart<C>::init();
    const int64_t begin = blockIdx.x * kRowsAPart, end = min(targets.count, begin + kRowsAPart);
    for (int64_t row = begin + threadIdx.x; row < end; row += blockDim.x) {
        part.used += targets.at(row) != targets.ignored;
        if (losses) part.sum = add.combine(part.sum, add.state(losses[row]));
    }
    part = reduce_block(part, LossPart<C>::init(), LossPart<C>::combine);
    if (threadIdx.x > 0) return;
    if (gridDim.x > 1)
        parts[blockIdx.x] = part;
    else
        whole.put(part);
}

template <class T, class C = compute_type<T>>
__global__ void __launch_bounds__(kMostThreads)
    add_loss_parts(const LossPart<C> *parts, int64_t count, WholeLoss<T> whole)
{
    LossPart<C> all = LossPart<C>::init();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        all = LossPart<C>::combine(all, parts[i]);
    all = reduce_block(all, LossPart<C>::init(), LossPart<C>::combine);
    if (threadIdx.x == 0) whole.put(all);
}

// Losses of a call's rows before the addition, and the sums of parts.
template <class T>
class RowLosses {
    using C = compute_type<T>;
    using Part = LossPart<C>;

public:
    RowLosses(const yoke_launch *launch, const Call &call)
        : launch_(launch),
          call_(call),
          blocks_(max(1, divide_up(call.targets.count, kRowsAPart))),
          scratch_(launch)
    {
    }

    yoke_status reserve()
    {
        const int64_t rows = call_.reduction.none ? 0 : call_.targets.count;
        return scratch_.reserve((uint64_t)blocks_ * sizeof(Part) + (uint64_t)rows * sizeof(C));
    }
    LossPlace<T> place(const yoke_operand &loss) const { return {losses(), data_of<T>(loss)}; }

    yoke_status add(const yoke_operand &loss, const yoke_operand &used) const
    {
        const int threads = block_size(kMostThreads);
        const WholeLoss<T> whole{data_of<T>(loss), data_of<C>(used), call_.reduction.mean,
                                 call_.reduction.none};
        const yoke_status status =
            start(launch_, add_losses<T>, {blocks_, threads}, (const C *)losses(), call_.targets,
                  scratch_.template as<Part>(), whole);
        if (status || blocks_ == 1) return status;
        return start(launch_, add_loss_parts<T>, {1, threads}, scratch_.template as<const Part>(),
                     blocks_, whole);
    }

private:
    C *losses() const
    {
        if (call_.reduction.none) return nullptr;
        return reinterpret_cast<C *>(scratch_.template as<Part>() + blocks_);
    }

    const yoke_launch *launch_;
    const Call &call_;
    const int64_t blocks_;
    Scratch scratch_;
};

YOKE_CUDA_END
