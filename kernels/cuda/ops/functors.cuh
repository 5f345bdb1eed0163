// Functors of elementwise kernels: several in one kernel, and how often a kernel has the code of a functor.
//
// Contract
//  * A functor with a member with(body) stands for several functors: it calls body(functor) with the launch's functor.
//  * A functor with kIsSeldom = true is costly and seldom hot. A kernel has two copies of its code, or a single copy
//    that is called, in place of a copy for each element of a thread.
#pragma once

#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

// ---- several functors in one kernel ---------------------------------------------------------------------------------

// Union of functors G, selected by number; the functors' members are doubles. A kernel of several functors compiles
// in little more time than a kernel of one. It needs the registers of the largest functor, so only cheap functors are
// put together.
template <class... G>
struct OneOf {
    int which;
    double held[2];

    template <class F>
    static constexpr bool kHas = (std::is_same_v<F, G> || ...);

    template <class F>
    static OneOf of(double first = 0, double second = 0)
    {
        int which = 0;
        (void)((std::is_same_v<F, G> || (which++, false)) || ...);
        return {which, {first, second}};
    }

    template <class Body>
    __device__ void with(const Body &body) const
    {
        choose<0, G...>(body);
    }

private:
    template <int kPlace, class First, class... Rest, class Body>
    __device__ void choose(const Body &body) const
    {
        if constexpr (sizeof...(Rest) > 0)
            if (which != kPlace) return choose<kPlace + 1, Rest...>(body);
        if constexpr (std::is_empty_v<First>)
            body(First());
        else if constexpr (sizeof(First) == sizeof(double))
            body(First{held[0]});
        else
            body(First{held[0], held[1]});
    }
};

// Union of functors that are costly and seldom hot: apply() makes fewer copies of their code.
template <class... G>
struct Seldom : OneOf<G...> {
    static constexpr bool kIsSeldom = true;

    template <class F>
    static Seldom of(double first = 0, double second = 0)
    {
        return {OneOf<G...>::template of<F>(first, second)};
    }
};

template <class F>
constexpr bool kIsSeldom = requires
{
    requires F::kIsSeldom;
};

// OneOf that contains a functor, among several.
template <class F, class Group, class... Rest>
struct FindGroup {
    using type = typename FindGroup<F, Rest...>::type;
};
template <class F, class Group, class... Rest>
requires(Group::template kHas<F>) struct FindGroup<F, Group, Rest...> {
    using type = Group;
};

template <class F, class... Groups>
inline auto one_of(double first = 0, double second = 0)
{
    return FindGroup<F, Groups...>::type::template of<F>(first, second);
}

template <class F, class Body>
__device__ inline void with_functor(const F &f, const Body &body)
{
    if constexpr (requires { f.with(body); })
        f.with(body);
    else
        body(f);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

// Whether a functor is called and not inlined, so its code exists once: for doubles, and for integers if the code is
// large. A call takes less time than memory takes for 8 bytes. A large functor would be copied for each call.
template <class F, class C>
constexpr bool kIsApart = sizeof(C) == 8 && sizeof(F) <= 32 &&
                          (std::is_same_v<C, double> || kIsSeldom<F>);

// Calls a functor without inlining it.
template <class R, class F, class... C>
__device__ __attribute__((noinline)) inline R call_apart(F f, C... x)
{
    R y = {};
    with_functor(f, [&](const auto &g) { y = g(x...); });
    return y;
}

// Moves the elements of an array two places to the front.
template <int N, class T>
__device__ inline void shift_pairs(T (&x)[N])
{
    YOKE_UNROLL
    for (int k = 2; k < N; k++) x[k - 2] = x[k];
}

// Calls a functor for two elements at a time, so its code exists twice, and not N times. The elements move through the
// first two places, because registers have no index. The results follow the elements of the first input.
template <class G, int N, class C, size_t... K>
__device__ inline void apply_by_pairs(const G &g, const C (&x)[sizeof...(K)][N], C (&y)[N],
                                      std::index_sequence<K...>)
{
    C left[sizeof...(K)][N];
    memcpy(left, x, sizeof left);
    YOKE_NO_UNROLL
    for (int pair = 0; pair < N / 2; pair++) {
        const C first = g(left[K][0]...), second = g(left[K][1]...);
        (shift_pairs(left[K]), ...);
        left[0][N - 2] = first, left[0][N - 1] = second;
    }
    memcpy(y, left[0], sizeof y);
}

template <class R, class F, int N, class C, size_t... K>
__device__ inline void apply(const F &f, const C (&x)[sizeof...(K)][N], R (&y)[N],
                             std::index_sequence<K...>)
{
    if constexpr (kIsApart<F, C>) {
        YOKE_UNROLL
        for (int k = 0; k < N; k++) y[k] = call_apart<R>(f, x[K][k]...);
    } else if constexpr (kIsSeldom<F> && N > 2) {
        with_functor(f,
                     [&](const auto &g) { apply_by_pairs(g, x, y, std::index_sequence<K...>()); });
    } else {
        with_functor(f, [&](const auto &g) {
            YOKE_UNROLL
            for (int k = 0; k < N; k++) y[k] = g(x[K][k]...);
        });
    }
}

YOKE_CUDA_END
