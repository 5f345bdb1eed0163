// Elementwise kernels: a functor over operands of any strides, in one read and one write of each element.
//
// Contract
//  * map<Out>(launch, out, f, inputs…) sets out[i] = f(inputs[i]…) over stored values; the inputs broadcast to out's
//    shape, one may be out itself. Input<T>(operand) takes a script's number as well as a tensor.
//  * Operands that are runs, or one value, go 16 bytes at a time; the rest by walk.cuh.
#pragma once

#include "kernels/cuda/walk.cuh"

YOKE_CUDA_BEGIN

// An operand of elements T. A script's number travels in the arguments of the kernel.
template <class T>
struct Input {
    using Element = T;
    const yoke_operand *operand;
    T number{};

    explicit Input(const yoke_operand &o) : operand(&o)
    {
        if (o.flags & YOKE_OPERAND_SCALAR) memcpy(&number, &o.immediate, sizeof(T));
    }
    bool is_number() const { return operand->flags & YOKE_OPERAND_SCALAR; }
};

// The same for a kernel: a run, one value in memory (step 0), or a number (no data).
template <class T>
struct Run {
    const T *data;
    T number;
    int step;

    explicit Run(const Input<T> &input)
        : data(input.is_number() ? nullptr : data_of<const T>(*input.operand)),
          number(input.number),
          step(input.operand->numel != 1)
    {
    }
    __device__ T one() const { return data ? data[0] : number; }
    __device__ T at(int64_t i) const { return step ? data[i] : one(); }
    template <int N>
    __device__ Pack<T, N> pack(int64_t i) const
    {
        if (step) return load_pack<N>(data + i);
        Pack<T, N> same;
        const T value = one();
        for (int k = 0; k < N; k++) same.at[k] = value;
        return same;
    }
};

template <int N, class Out, class F, class... P>
__device__ inline Pack<Out, N> apply(const F &f, const P &...packs)
{
    Pack<Out, N> results;
    YOKE_UNROLL
    for (int k = 0; k < N; k++) results.at[k] = f(packs.at[k]...);
    return results;
}

// N elements at a time, `packs` times, then one by one.
template <int N, class Out, class F, class... T>
__global__ void map_runs(Out *out, int64_t n, int64_t packs, F f, Run<T>... in)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x,
                  first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = first; i < packs; i += step)
        store_pack<N>(out + i * N, apply<N, Out>(f, in.template pack<N>(i * N)...));
    for (int64_t i = packs * N + first; i < n; i += step) out[i] = f(in.at(i)...);
}

// A functor on elements by their addresses; numbers have none.
template <class T>
struct Reader {
    T number;
    bool is_number;
    __device__ T at(const char *address) const
    {
        return is_number ? number : *reinterpret_cast<const T *>(address);
    }
};

template <class Out, class F, class... T, size_t... I>
__device__ inline void map_one(const Place<1 + sizeof...(T)> &place, const F &f,
                               std::index_sequence<I...>, const Reader<T> &...in)
{
    *reinterpret_cast<Out *>(place.data[0]) = f(in.at(place.data[I + 1])...);
}

template <class Out, class F, class... T>
__global__ void map_strided(Walk<1 + sizeof...(T)> walk, F f, Reader<T>... in)
{
    walk_elements(walk, [&](int64_t, const Place<1 + sizeof...(T)> &place) {
        map_one<Out>(place, f, std::index_sequence_for<T...>(), in...);
    });
}

// Whether an operand is one run beside n elements, or one value for all of them.
inline bool is_simple(const yoke_operand &operand, int64_t n)
{
    return operand.numel == 1 || (operand.numel == n && is_contiguous(operand));
}

template <int N, class T>
inline bool is_packed(const Run<T> &run)
{
    return !run.step || is_aligned(run.data, sizeof(Pack<T, N>));
}

// Whether the operands, though not row-major, lie all alike and without gaps: one run again once the axes are joined.
template <int N>
inline bool is_one_run(const Loop<N> &loop, const int64_t (&sizes)[N])
{
    if (loop.ndim != 1) return false;
    for (int i = 0; i < N; i++)
        if (loop.numel != 1 && loop.stride[0][i] != sizes[i]) return false;
    return true;
}

template <class Out, class F, class... T>
inline yoke_status start_runs(const yoke_launch *launch, Out *out, int64_t n, const F &f,
                              const Run<T> &...in)
{
    constexpr int N = kPackLength<Out, T...>;
    const bool packed = is_aligned(out, sizeof(Pack<Out, N>)) && (is_packed<N>(in) && ...);
    const int threads = block_size(kThreads);
    return start(launch, map_runs<N, Out, F, T...>,
                 {blocks_for(launch, n, threads * (packed ? N : 1)), threads}, out, n,
                 packed ? n / N : 0, f, in...);
}

template <class Out, class F, class... T>
inline yoke_status map(const yoke_launch *launch, const yoke_operand &out, const F &f,
                       const Input<T> &...in)
{
    constexpr int N = 1 + (int)sizeof...(T);
    const int64_t n = out.numel;
    if (n == 0) return YOKE_OK;
    if (is_contiguous(out) && (is_simple(*in.operand, n) && ...))
        return start_runs<Out, F, T...>(launch, data_of<Out>(out), n, f, Run<T>(in)...);
    Loop<N> loop;
    plan_loop<N>(loop, {&out, in.operand...});
    if (is_one_run<N>(loop, {(int64_t)sizeof(Out), (int64_t)sizeof(T)...}) &&
        !(in.is_number() || ...)) {
        size_t i = 0;
        auto run = [&]<class E>(const Input<E> &input) {
            Run<E> made(input);
            made.data = reinterpret_cast<const E *>(loop.data[++i]);
            made.step = 1;
            return made;
        };
        std::tuple<Run<T>...> runs{run(in)...};  // in braces, hence in order
        return std::apply(
            [&](const Run<T> &...r) {
                return start_runs<Out, F, T...>(launch, reinterpret_cast<Out *>(loop.data[0]), n, f,
                                                r...);
            },
            runs);
    }
    const Walk<N> walk(loop);
    return start(launch, map_strided<Out, F, T...>, walk_grid(launch, walk), walk, f,
                 Reader<T>{in.number, in.is_number()}...);
}

// ---- functors of kernels/common over stored values ---------------------------------------------------------------

template <class T, class F>
struct Stored {
    F f;
    template <class... A>
    YOKE_HD T operator()(A... a) const
    {
        return store<T>(f(load<T>(a)...));
    }
};

// One that tells something of stored values.
template <class T, class F>
struct Told {
    F f;
    template <class... A>
    YOKE_HD bool operator()(A... a) const
    {
        return f(load<T>(a)...);
    }
};

template <class To, class From>
struct Converted {
    YOKE_HD To operator()(From x) const { return convert<To>(x); }
};

template <class T, class F>
inline yoke_status unary(const yoke_launch *launch, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T>(launch, x[1], Stored<T, F>{f}, Input<T>(x[0]));
}

template <class T, class F>
inline yoke_status binary(const yoke_launch *launch, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T>(launch, x[2], Stored<T, F>{f}, Input<T>(x[0]), Input<T>(x[1]));
}

template <class T, class F>
inline yoke_status ternary(const yoke_launch *launch, F f = F())
{
    const yoke_operand *x = launch->operands;
    return map<T>(launch, x[3], Stored<T, F>{f}, Input<T>(x[0]), Input<T>(x[1]), Input<T>(x[2]));
}

// The lines of kernels/common/pointwise_ops.h.
#define YOKE_POINTWISE(name, types, call)                                                      \
    YOKE_KERNEL(name)                                                                          \
    {                                                                                          \
        return types(launch, "x", launch->operands[0].dtype, [&]<class T>() { return call; }); \
    }
#define YOKE_UNARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, (unary<T, kernels::F>(launch)))
#define YOKE_BINARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, (binary<T, kernels::F>(launch)))
#define YOKE_WITH_PARAMS(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, (unary<T>(launch, kernels::F{__VA_ARGS__})))
#define YOKE_WITH_PARAMS_BACKWARD(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float, (binary<T>(launch, kernels::F{__VA_ARGS__})))
#define YOKE_TEST(name, F)                                                        \
    YOKE_POINTWISE(name, for_any,                                                 \
                   (map<bool>(launch, launch->operands[1], Told<T, kernels::F>{}, \
                              Input<T>(launch->operands[0]))))
#define YOKE_COMPARISON(name, F)                                                  \
    YOKE_POINTWISE(name, for_any,                                                 \
                   (map<bool>(launch, launch->operands[2], Told<T, kernels::F>{}, \
                              Input<T>(launch->operands[0]), Input<T>(launch->operands[1]))))

YOKE_CUDA_END
