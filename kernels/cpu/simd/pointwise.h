// How elementwise kernels are written: one line an op over a functor of kernels/common.
//
// Contract
//  * YOKE_UNARY, YOKE_BINARY, YOKE_COMPARISON and YOKE_TEST define the kernel of a line of pointwise_ops.h.
//  * map_many takes three or four inputs. It works in blocks: inputs that are not runs are gathered into one, so that a
//    single loop becomes vectors whatever is broadcast.
#pragma once

#include "kernels/common/pointwise_ops.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// An exp or an erf costs some ten additions, so it is worth sharing sooner.
constexpr int64_t kCostlyGrain = 4096;

template <class T, class F>
inline yoke_status unary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T>(x[1], x[0], Stored<T, F>{f}, grain);
}

template <class T, class F>
inline yoke_status binary(const yoke_launch *launch, int64_t grain, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T, T, T>(x[2], x[0], x[1], Stored<T, F>{f}, grain);
}

// A functor that tells something of stored values.
template <class T, class F>
struct Told {
    F f;
    YOKE_HD bool operator()(T a) const { return f(load<T>(a)); }
    YOKE_HD bool operator()(T a, T b) const { return f(load<T>(a), load<T>(b)); }
};

#define YOKE_POINTWISE(name, types, grain, call)                                               \
    YOKE_KERNEL(name)                                                                          \
    {                                                                                          \
        return types(launch, "x", launch->operands[0].dtype, [&]<class T>() { return call; }); \
    }
#define YOKE_UNARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, grain, (unary<T, kernels::F>(launch, grain)))
#define YOKE_BINARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, grain, (binary<T, kernels::F>(launch, grain)))
#define YOKE_TEST(name, F)     \
    YOKE_POINTWISE(            \
        name, for_any, kGrain, \
        (map<bool, T>(launch->operands[1], launch->operands[0], Told<T, kernels::F>{})))
#define YOKE_COMPARISON(name, F)                                                                   \
    YOKE_POINTWISE(name, for_any, kGrain,                                                          \
                   (map<bool, T, T>(launch->operands[2], launch->operands[0], launch->operands[1], \
                                    Told<T, kernels::F>{})))

// ---- three and four inputs -------------------------------------------------------------------------------------

constexpr int64_t kBlock = 512;

// n elements as a run: where they lie, or gathered into `buffer`.
template <class T>
inline const T *as_run(const char *data, int64_t stride, int64_t n, T *buffer)
{
    if (stride == sizeof(T)) return (const T *)data;
    for (int64_t i = 0; i < n; i++) buffer[i] = *(const T *)(data + i * stride);
    return buffer;
}

template <class T>
inline void scatter_run(char *data, int64_t stride, int64_t n, const T *run)
{
    if ((const char *)run == data) return;
    for (int64_t i = 0; i < n; i++) *(T *)(data + i * stride) = run[i];
}

// f(begin of the block, its pointers, strides, length) for every block of the walk.
template <int N, class F>
inline void walk_blocks(const Loop<N> &loop, int64_t grain, const F &block)
{
    parallel_range(loop.numel, grain, [&](int64_t begin, int64_t end) {
        walk<N>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            for (int64_t at = 0; at < n; at += kBlock) {
                char *place[N];
                for (int i = 0; i < N; i++) place[i] = data[i] + at * stride[i];
                block(place, stride, min(kBlock, n - at));
            }
        });
    });
}

template <class Out, class A, class B, class C, class F>
inline yoke_status map_many(const yoke_operand &out, const yoke_operand &a, const yoke_operand &b,
                            const yoke_operand &c, const F &f, int64_t grain = kGrain)
{
    Loop<4> loop;
    plan_loop<4>(loop, {&out, &a, &b, &c});
    walk_blocks<4>(loop, grain, [&](char *const *data, const int64_t *stride, int64_t n) {
        Out results[kBlock];
        A as[kBlock];
        B bs[kBlock];
        C cs[kBlock];
        Out *to = stride[0] == sizeof(Out) ? (Out *)data[0] : results;
        const A *x = as_run<A>(data[1], stride[1], n, as);
        const B *y = as_run<B>(data[2], stride[2], n, bs);
        const C *z = as_run<C>(data[3], stride[3], n, cs);
#pragma omp simd
        for (int64_t i = 0; i < n; i++) to[i] = f(x[i], y[i], z[i]);
        scatter_run<Out>(data[0], stride[0], n, to);
    });
    return YOKE_OK;
}

template <class T, class F>
inline yoke_status map_many(const yoke_operand &out, const yoke_operand &a, const yoke_operand &b,
                            const yoke_operand &c, const yoke_operand &d, const F &f,
                            int64_t grain = kGrain)
{
    Loop<5> loop;
    plan_loop<5>(loop, {&out, &a, &b, &c, &d});
    walk_blocks<5>(loop, grain, [&](char *const *data, const int64_t *stride, int64_t n) {
        T buffers[5][kBlock];
        T *to = stride[0] == sizeof(T) ? (T *)data[0] : buffers[0];
        const T *x = as_run<T>(data[1], stride[1], n, buffers[1]);
        const T *y = as_run<T>(data[2], stride[2], n, buffers[2]);
        const T *z = as_run<T>(data[3], stride[3], n, buffers[3]);
        const T *w = as_run<T>(data[4], stride[4], n, buffers[4]);
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            to[i] = store<T>(f(load<T>(x[i]), load<T>(y[i]), load<T>(z[i]), load<T>(w[i])));
        scatter_run<T>(data[0], stride[0], n, to);
    });
    return YOKE_OK;
}

YOKE_SIMD_END
