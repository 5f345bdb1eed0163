// Gradients of reductions: of amax and amin, prod, var, norm and logsumexp.
//
// In all of them grad (and out, or mean) have x's axes, of which the reduced ones are of length 1. What a result's
// elements have in common is found by a reduction into scratch; then one pass over x and out spreads it.
#include "kernels/common/moments.h"
#include "kernels/common/ties.h"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/reduce.cuh"

YOKE_CUDA_BEGIN

// ---- spreading ------------------------------------------------------------------------------------------------------

// Of the walk: out, x and two operands that broadcast.
constexpr int kOut = 0, kOf = 1, kFirst = 2, kSecond = 3;

// N values beside N elements: a run, or one for all of them.
template <int N, class G>
__device__ inline Pack<G, N> values_at(const char *from, int64_t step)
{
    Pack<G, N> values;
    YOKE_UNROLL
    for (int k = 0; k < N; k++) values.at[k] = *(const G *)(from + (step ? k * step : 0));
    return values;
}

// out[i] = f(g[i], x[i], y[i]), 16 bytes of out and x at a time; no pack leaves its innermost axis.
template <class T, class G, class Y, class F>
__global__ void spread_packs(Walk<4> walk, F f)
{
    constexpr int N = kPackLength<T>;
    const int64_t packs = walk.numel / N;
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; p < packs;
         p += (int64_t)gridDim.x * blockDim.x) {
        const Place<4> place = walk.at(p * N);
        const Pack<T, N> x = load_pack<N>((const T *)place.data[kOf]);
        const Pack<G, N> g = values_at<N, G>(place.data[kFirst], walk.stride[0][kFirst]);
        const Pack<Y, N> y = values_at<N, Y>(place.data[kSecond], walk.stride[0][kSecond]);
        Pack<T, N> out;
        YOKE_UNROLL
        for (int k = 0; k < N; k++) out.at[k] = f(g.at[k], x.at[k], y.at[k]);
        store_pack<N>((T *)place.data[kOut], out);
    }
}

template <class T, class G, class Y, class F>
__global__ void spread_elements(Walk<4> walk, F f)
{
    walk_elements(walk, [&](int64_t, const Place<4> &place) {
        *(T *)place.data[kOut] = f(*(const G *)place.data[kFirst], *(const T *)place.data[kOf],
                                   *(const Y *)place.data[kSecond]);
    });
}

// Whether out and x lie in runs of whole packs.
template <class T>
static bool lies_in_packs(const Loop<4> &loop)
{
    bool packed = loop.shape[0] % kPackLength<T> == 0;
    for (int i = kOut; i <= kOf; i++) {
        packed &= loop.stride[0][i] == (int64_t)sizeof(T) && is_aligned(loop.data[i], 16);
        for (int axis = 1; axis < loop.ndim; axis++) packed &= loop.stride[axis][i] % 16 == 0;
    }
    return packed;
}

// out[i] = f(g[i], x[i], y[i]) over stored values; g and y broadcast.
template <class T, class G, class Y, class F>
static yoke_status spread(const yoke_launch *launch, const yoke_operand &out, const F &f,
                          const yoke_operand &g, const yoke_operand &x, const yoke_operand &y)
{
    if (out.numel == 0) return YOKE_OK;
    Loop<4> loop;
    plan_loop<4>(loop, {&out, &x, &g, &y});
    const Walk<4> walk(loop);
    if (!lies_in_packs<T>(loop))
        return start(launch, spread_elements<T, G, Y, F>, walk_grid(launch, walk), walk, f);
    const int threads = block_size(kThreads);
    const int64_t packs = out.numel / kPackLength<T>;
    return start(launch, spread_packs<T, G, Y, F>, {blocks_for(launch, packs, threads), threads},
                 walk, f);
}

// ---- elementwise ones: from x, the gradient and one more value a result ---------------------------------------------

// grad and y are in the type that x is computed in.
template <class T, class F>
struct Slope {
    F f;
    __device__ T operator()(compute_type<T> g, T x, compute_type<T> y) const
    {
        return store<T>(f(g, load<T>(x), y));
    }
};

template <class T, class F>
static yoke_status spread_slope(const yoke_launch *launch, const F &f)
{
    using C = compute_type<T>;
    const yoke_operand *x = launch->operands;
    return spread<T, C, C>(launch, x[3], Slope<T, F>{f}, x[0], x[1], x[2]);
}

YOKE_KERNEL(_var_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype,
                     [&]<class T>() { return spread_slope<T>(launch, kernels::VarBackward()); });
}

YOKE_KERNEL(_logsumexp_backward)
{
    return for_float(launch, "x", launch->operands[1].dtype, [&]<class T>() {
        return spread_slope<T>(launch, kernels::LogSumExpBackward());
    });
}

// ---- those that look at all elements of a result first --------------------------------------------------------------

// A value for each result, as an operand of the shape of `like`: row-major, and said to be of 8-byte elements.
struct PerResult {
    Scratch scratch;
    int64_t strides[YOKE_MAX_NDIM];
    yoke_operand operand;

    explicit PerResult(const yoke_launch *launch) : scratch(launch) {}

    template <class Value>
    yoke_status reserve(const yoke_operand &like)
    {
        static_assert(sizeof(Value) % 8 == 0, "strides count doubles");
        int64_t step = sizeof(Value) / 8;
        for (int axis = like.ndim - 1; axis >= 0; axis--) {
            strides[axis] = step;
            step *= like.shape[axis];
        }
        operand = like;
        operand.dtype = YOKE_F64;
        operand.strides = strides;
        operand.flags = YOKE_OPERAND_READ | YOKE_OPERAND_WRITE;
        const yoke_status status = scratch.reserve((uint64_t)like.numel * sizeof(Value));
        operand.data = scratch.as<void>();
        return status;
    }
};

// The axes that `kept`, of the shape of the results, keeps.
static ReduceAxes axes_beside(const yoke_operand &kept, const yoke_operand &x,
                              const yoke_operand &result, const yoke_operand *more0 = nullptr,
                              const yoke_operand *more1 = nullptr)
{
    bool is_reduced[YOKE_MAX_NDIM];
    for (int axis = 0; axis < x.ndim; axis++) {
        const int own = axis - (x.ndim - kept.ndim);
        is_reduced[axis] = own < 0 || kept.shape[own] != x.shape[axis];
    }
    return ReduceAxes(x, result, is_reduced, more0, more1);
}

// What each of the elements of extreme value, or magnitude, gets.
template <class C>
struct TieShare {
    C share, top;
};

template <class T>
struct Ties {
    using Element = compute_type<T>;
    using State = int64_t;
    bool by_magnitude;
    bool is_wide;  // top and grad are in the computing type
    Element top, grad;

    __device__ Ties at(const Place<kSides> &place) const
    {
        Ties mine = *this;
        const char *of = place.data[kMore], *from = place.data[kMore + 1];
        mine.top = is_wide ? *(const Element *)of : load<T>(*(const T *)of);
        mine.grad = is_wide ? *(const Element *)from : load<T>(*(const T *)from);
        return mine;
    }
    __device__ Element element(T x) const
    {
        return by_magnitude ? kernels::magnitude(load<T>(x)) : load<T>(x);
    }
    __device__ State init() const { return 0; }
    __device__ State reduce(State s, Element x, int64_t) const
    {
        return s + kernels::is_same(x, top);
    }
    __device__ State combine(State a, State b) const { return a + b; }
    __device__ void put(char *out, State count) const
    {
        *(TieShare<Element> *)out = {grad / (Element)max(1, count), top};
    }
};

template <class T>
struct SpreadTies {
    using C = compute_type<T>;
    bool by_magnitude;
    __device__ T operator()(TieShare<C> tie, T stored, T) const
    {
        const C x = load<T>(stored);
        return store<T>(by_magnitude ? kernels::ShareOfMagnitude()(tie.share, x, tie.top)
                                     : kernels::ShareOfExtreme()(tie.share, x, tie.top));
    }
};

template <class T>
static yoke_status share_among_ties(const yoke_launch *launch, bool by_magnitude)
{
    using Tie = TieShare<compute_type<T>>;
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &top = launch->operands[2], &out = launch->operands[3];
    PerResult ties(launch);
    if (yoke_status status = ties.reserve<Tie>(top)) return status;
    const ReduceAxes axes = axes_beside(top, x, ties.operand, &top, &grad);
    const Ties<T> op{by_magnitude, by_magnitude, {}, {}};
    if (yoke_status status = reduce<T>(launch, axes, op)) return status;
    return spread<T, Tie, T>(launch, out, SpreadTies<T>{by_magnitude}, ties.operand, x, x);
}

YOKE_KERNEL(_amax_backward)
{
    const yoke_operand &x = launch->operands[1];
    if (x.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype,
                     [&]<class T>() { return share_among_ties<T>(launch, false); });
}

YOKE_KERNEL(_norm_backward)
{
    const yoke_operand &x = launch->operands[1];
    if (x.numel == 0) return YOKE_OK;
    const double p = float_param(launch->params[0]);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        if (p - p == 0) return spread_slope<T>(launch, kernels::NormBackward{p});
        return share_among_ties<T>(launch, true);
    });
}

// The product of what is not 0, and how many are 0. In double, where no product of a few halves or floats leaves the
// range.
struct ProductAndZeros {
    double product;
    int64_t zeros;
};

template <class T>
struct Factors {
    using Element = compute_type<T>;
    using State = ProductAndZeros;
    __device__ Element element(T x) const { return load<T>(x); }
    __device__ State init() const { return {1, 0}; }
    __device__ State reduce(State s, Element x, int64_t) const
    {
        return {s.product * (x == 0 ? 1.0 : (double)x), s.zeros + (x == 0)};
    }
    __device__ State combine(State a, State b) const
    {
        return {a.product * b.product, a.zeros + b.zeros};
    }
    __device__ void put(char *out, State s) const { *(State *)out = s; }
};

template <class T>
struct SpreadProduct {
    __device__ T operator()(compute_type<T> g, T x, ProductAndZeros all) const
    {
        return convert<T>((double)g *
                          kernels::product_of_others(all.product, all.zeros, (double)load<T>(x)));
    }
};

YOKE_KERNEL(_prod_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    if (x.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        PerResult products(launch);
        if (yoke_status status = products.reserve<ProductAndZeros>(grad)) return status;
        const ReduceAxes axes = axes_beside(grad, x, products.operand);
        if (yoke_status status = reduce<T>(launch, axes, Factors<T>())) return status;
        return spread<T, compute_type<T>, ProductAndZeros>(launch, out, SpreadProduct<T>(), grad, x,
                                                           products.operand);
    });
}

YOKE_CUDA_END
