// cumprod along any axis, and its gradient. A row has a block, which goes through it a tile at a time.
#include "kernels/common/scan.h"
#include "kernels/cuda/ops/kernel.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

using kernels::scan_result;
using kernels::scan_sum;
using kernels::scan_type;

constexpr int kTile = 256;  // threads of a block, each with an element

// Product of factors.
template <class S>
struct Factor {
    S factor, rest;

    static __device__ Factor none() { return {(S)1, (S)0}; }
    // Returns the step that does this step after the other.
    __device__ Factor after(const Factor &other) const { return {factor * other.factor, (S)0}; }
    __device__ S from(S value) const { return factor * value; }
};

// Map from the value before an element to the value after: times `factor`, plus `rest`. A value of 0 stays out of the
// product, because the factors of several steps may be infinite together.
struct Step {
    double factor, rest;

    static __device__ Step none() { return {1, 0}; }
    __device__ Step after(const Step &other) const
    {
        return {factor * other.factor, from(other.rest)};
    }
    __device__ double from(double value) const { return value == 0 ? rest : rest + factor * value; }
};

// Returns the map of all steps up to the thread's own.
template <class Steps, class Array>
__device__ inline Steps steps_through(Steps mine, Array &factors, Array &rests)
{
    for (int distance = 1; distance < (int)blockDim.x; distance *= 2) {
        __syncthreads();
        factors[threadIdx.x] = mine.factor;
        rests[threadIdx.x] = mine.rest;
        __syncthreads();
        const int other = (int)threadIdx.x - distance;
        if (other >= 0) mine = mine.after(Steps{factors[other], rests[other]});
    }
    return mine;
}

// Goes through n elements from `value`. Calls put(i, before, after) with the values around each step(i).
template <class Steps, class S, class Array, class Of, class Put>
__device__ inline void go_through(int64_t n, S value, Array &factors, Array &rests, const Of &step,
                                  const Put &put)
{
    for (int64_t first = 0; first < n; first += blockDim.x) {
        const int64_t i = first + threadIdx.x;
        const S after = steps_through(i < n ? step(i) : Steps::none(), factors, rests).from(value);
        __syncthreads();
        rests[threadIdx.x] = after;
        __syncthreads();
        const S before = threadIdx.x == 0 ? value : (S)rests[threadIdx.x - 1];
        if (i < n) put(i, before, after);
        value = rests[blockDim.x - 1];
    }
}

template <int N>
struct ProductJob {
    Walk<N> rows;
    int64_t length, step[N];
    bool of_bools;

    ProductJob(const kernels::AxisRows<N> &from, bool are_bools)
        : rows(from.outer), length(from.length), of_bools(are_bools)
    {
        for (int i = 0; i < N; i++) step[i] = from.step[i];
    }
    template <class T>
    __device__ T &at(const Place<N> &row, int operand, int64_t i) const
    {
        return *(T *)(row.data[operand] + i * step[operand]);
    }
};

// Operands: the result, x. A bool is read as uint8.
template <class T>
__global__ void __launch_bounds__(kTile) scan_products(ProductJob<2> job)
{
    using S = scan_type<T>;
    YOKE_SHARED(S, factors, kTile);
    YOKE_SHARED(S, rests, kTile);
    for (int64_t number = blockIdx.x; number < job.rows.numel; number += gridDim.x) {
        const Place<2> row = job.rows.at(number);
        const auto step = [&](int64_t i) {
            const T x = job.template at<T>(row, 1, i);
            S term = kernels::scan_term(x);
            if (job.of_bools) term = (S)(term != (S)0);
            return Factor<S>{term, (S)0};
        };
        go_through<Factor<S>>(job.length, (S)1, factors, rests, step, [&](int64_t i, S, S after) {
            job.template at<scan_result<T>>(row, 0, i) = scan_sum<T>(after);
        });
    }
}

YOKE_KERNEL(cumprod)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    const kernels::AxisRows<2> rows({&out, &x}, (int)launch->params[0].v.i);
    const bool of_bools = x.dtype == YOKE_BOOL;
    const Grid grid{blocks_for(launch, rows.outer.numel, 1), block_size(kTile)};
    return for_number(launch, "x", of_bools ? (yoke_dtype)YOKE_U8 : x.dtype, [&]<class T>() {
        return start(launch, scan_products<T>, grid, ProductJob<2>(rows, of_bools));
    });
}

// Operands: the gradient of x, x, the gradient of the result. Element i has the product of the elements before i, times
// the sum of grad[j] times the product of the elements from i + 1 to j, over j from i on. The sums come first, from the
// end.
template <class T>
__global__ void __launch_bounds__(kTile) product_slopes(ProductJob<3> job, double *sums)
{
    YOKE_SHARED(double, factors, kTile);
    YOKE_SHARED(double, rests, kTile);
    const int64_t n = job.length;
    for (int64_t number = blockIdx.x; number < job.rows.numel; number += gridDim.x) {
        const Place<3> row = job.rows.at(number);
        double *const sum = sums + number * n;
        const auto x = [&](int64_t i) { return (double)load<T>(job.template at<T>(row, 1, i)); };
        const auto grad = [&](int64_t i) { return (double)load<T>(job.template at<T>(row, 2, i)); };
        go_through<Step>(
            n, 0.0, factors, rests,
            [&](int64_t i) {
                const int64_t place = n - 1 - i;
                return Step{i == 0 ? 0.0 : x(place + 1), grad(place)};
            },
            [&](int64_t i, double, double after) { sum[n - 1 - i] = after; });
        __syncthreads();
        go_through<Factor<double>>(
            n, 1.0, factors, rests,
            [&](int64_t i) {
                return Factor<double>{x(i), 0.0};
            },
            [&](int64_t i, double before, double) {
                job.template at<T>(row, 0, i) = convert<T>(before * sum[i]);
            });
    }
}

YOKE_KERNEL(_cumprod_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const kernels::AxisRows<3> rows({&o[2], &o[1], &o[0]}, (int)launch->params[0].v.i);
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve((uint64_t)o[2].numel * sizeof(double)))
        return status;
    const Grid grid{blocks_for(launch, rows.outer.numel, 1), block_size(kTile)};
    return for_float(launch, "x", o[1].dtype, [&]<class T>() {
        return start(launch, product_slopes<T>, grid, ProductJob<3>(rows, false),
                     scratch.as<double>());
    });
}

YOKE_CUDA_END
