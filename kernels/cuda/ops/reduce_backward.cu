// Gradients of reductions: of amax and amin, prod, var, norm and logsumexp.
//
// grad (and out, or mean) have x's axes; the reduced axes have length 1. A reduction into scratch finds the values
// common to a result's elements. Then a pass over x and out spreads these values.
#include "kernels/common/moments.h"
#include "kernels/common/ties.h"
#include "kernels/cuda/ops/map.cuh"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// ---- spreading ------------------------------------------------------------------------------------------------------

// Operands of the walk: out, x and two operands that broadcast.
constexpr int kOut = 0, kOf = 1, kFirst = 2, kSecond = 3;

struct SpreadJob {
    Walk<4> walk;
    int64_t packs;  // packs of out and x, within the innermost axis; 0 without packs
    int dtype, size;
};

// Reads N values beside N elements: a run, or a single value for all elements.
template <int N, class G>
__device__ inline void values_at(const char *from, int64_t step, G (&to)[N])
{
    YOKE_UNROLL
    for (int k = 0; k < N; k++) to[k] = *(const G *)(from + (step ? k * step : 0));
}

// Computes out[i] = f(g[i], x[i], y[i]) over values.
template <class In, class G, class Y, class F>
__global__ void spread_values(SpreadJob job, F f)
{
    using C = typename In::Value;
    constexpr int N = kAtOnce<C>;
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; p < job.packs;
         p += (int64_t)gridDim.x * blockDim.x) {
        const Place<4> place = job.walk.at(p * N);
        Stored<In, N> stored;
        C x[N];
        G g[N];
        Y y[N];
        stored.load(place.data[kOf], job.size, 0, N / 2);
        values_at(place.data[kFirst], job.walk.stride[0][kFirst], g);
        values_at(place.data[kSecond], job.walk.stride[0][kSecond], y);
        stored.unpack(job.dtype, x);
        with_functor(f, [&](const auto &each) {
            YOKE_UNROLL
            for (int k = 0; k < N; k++) x[k] = each(g[k], x[k], y[k]);
        });
        put<In>(Side{place.data[kOut], 0, job.dtype, job.size, false, true}, 0, N / 2, x);
    }
    if (job.packs) return;
    walk_elements(job.walk, [&](int64_t, const Place<4> &place) {
        const C x = value_at<In>(place.data[kOf], job.dtype, job.size);
        C out;
        with_functor(f, [&](const auto &each) {
            out = each(*(const G *)place.data[kFirst], x, *(const Y *)place.data[kSecond]);
        });
        put_one<In>(job.dtype, place.data[kOut], out);
    });
}

// Returns whether out and x lie in runs of whole packs of n elements.
static bool lies_in_packs(const Loop<4> &loop, int64_t n, int64_t size)
{
    const int64_t bytes = pack_bytes(n, size);
    bool packed = loop.shape[0] % n == 0;
    for (int i = kOut; i <= kOf; i++) {
        packed &= loop.stride[0][i] == size && is_aligned(loop.data[i], bytes);
        for (int axis = 1; axis < loop.ndim; axis++) packed &= loop.stride[axis][i] % bytes == 0;
    }
    return packed;
}

// Starts the kernel for out[i] = f(g[i], x[i], y[i]); g and y broadcast.
template <class In, class G, class Y, class F>
static yoke_status spread(const yoke_launch *launch, const yoke_operand &out, const F &f,
                          const yoke_operand &g, const yoke_operand &x, const yoke_operand &y)
{
    constexpr int64_t N = kAtOnce<typename In::Value>;
    const int64_t size = dtype_size(x.dtype);
    if (out.numel == 0) return YOKE_OK;
    Loop<4> loop;
    plan_loop<4>(loop, {&out, &x, &g, &y});
    SpreadJob job{Walk<4>(loop), 0, x.dtype, (int)size};
    if (lies_in_packs(loop, N, size)) job.packs = out.numel / N;
    const int threads = block_size(kThreads);
    const Grid grid = job.packs ? Grid{blocks_for(launch, job.packs, threads), threads}
                                : walk_grid(launch, job.walk);
    return start(launch, spread_values<In, G, Y, F>, grid, job, f);
}

// ---- elementwise gradients: from x, the gradient and another value for each result --------------------------------

using Slopes = OneOf<kernels::LogSumExpBackward, kernels::NormBackward>;

// Computes an elementwise gradient F. grad and y have the type in which x is computed.
template <class F>
static yoke_status spread_slope(const yoke_launch *launch, double held = 0)
{
    const yoke_operand *x = launch->operands;
    return for_float_format(launch, "x", x[1].dtype, [&]<class In>() {
        using C = typename In::Value;
        return spread<In, C, C>(launch, x[3], Slopes::of<F>(held), x[0], x[1], x[2]);
    });
}

YOKE_KERNEL(_var_backward)
{
    const yoke_operand *o = launch->operands;
    return for_float_format(launch, "x", o[1].dtype, [&]<class In>() {
        return spread<In, double, double>(launch, o[3], kernels::VarBackward(), o[0], o[1], o[2]);
    });
}

YOKE_KERNEL(_logsumexp_backward)
{
    return spread_slope<kernels::LogSumExpBackward>(launch);
}

// ---- gradients with a pass over all elements of a result first ----------------------------------------------------

// Value for each result, as an operand of the shape of `like`: row-major, with a declared dtype of 8-byte elements.
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

// Returns the axes of a reduction of x to `result`. The axes kept by `kept`, which has the shape of the results,
// stay.
static ReduceAxes axes_beside(const yoke_operand &kept, const yoke_operand &x,
                              const yoke_operand &result, const yoke_operand *more0 = nullptr,
                              const yoke_operand *more1 = nullptr)
{
    bool is_reduced[YOKE_MAX_NDIM];
    kernels::mark_missing_axes(kept, x, is_reduced);
    return ReduceAxes(x, result, is_reduced, more0, more1);
}

// Share of each element with the extreme value, or magnitude.
template <class C>
struct TieShare {
    C share, top;
};

template <class In>
struct Ties {
    using Element = typename In::Value;
    using State = int64_t;
    bool by_magnitude;
    int top_dtype, top_size, grad_dtype, grad_size;
    Element top, grad;

    __device__ Ties at(const Place<kSides> &place) const
    {
        Ties mine = *this;
        mine.top = value_at<In>(place.data[kMore], top_dtype, top_size);
        mine.grad = value_at<In>(place.data[kMore + 1], grad_dtype, grad_size);
        return mine;
    }
    __device__ Element element(Element x) const { return by_magnitude ? kernels::magnitude(x) : x; }
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

template <class C>
struct SpreadTies {
    bool by_magnitude;
    __device__ C operator()(TieShare<C> tie, C x, TieShare<C>) const
    {
        return by_magnitude ? kernels::ShareOfMagnitude()(tie.share, x, tie.top)
                            : kernels::ShareOfExtreme()(tie.share, x, tie.top);
    }
};

static yoke_status share_among_ties(const yoke_launch *launch, bool by_magnitude)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &top = launch->operands[2], &out = launch->operands[3];
    if (x.numel == 0) return YOKE_OK;
    return for_float_format(launch, "x", x.dtype, [&]<class In>() {
        using C = typename In::Value;
        using Tie = TieShare<C>;
        PerResult ties(launch);
        if (yoke_status status = ties.reserve<Tie>(top)) return status;
        const ReduceAxes axes = axes_beside(top, x, ties.operand, &top, &grad);
        const Ties<In> op{by_magnitude,
                          top.dtype,
                          (int)dtype_size(top.dtype),
                          grad.dtype,
                          (int)dtype_size(grad.dtype),
                          {},
                          {}};
        if (yoke_status status = reduce<In>(launch, axes, op)) return status;
        return spread<In, Tie, Tie>(launch, out, SpreadTies<C>{by_magnitude}, ties.operand, x,
                                    ties.operand);
    });
}

YOKE_KERNEL(_amax_backward)
{
    return share_among_ties(launch, false);
}

YOKE_KERNEL(_norm_backward)
{
    const double p = float_param(launch->params[0]);
    if (p - p == 0) return spread_slope<kernels::NormBackward>(launch, p);
    return share_among_ties(launch, true);
}

using kernels::Factors;

// Adds an element to factors. Not inlined, so the code exists once.
__device__ __attribute__((noinline)) inline Factors with_factor(Factors all, double x)
{
    return all.with(x);
}

__device__ __attribute__((noinline)) inline Factors joined_factors(Factors a, Factors b)
{
    return a.joined(b);
}

template <class C>
struct AllFactors {
    using Element = C;
    using State = Factors;
    __device__ Element element(C x) const { return x; }
    __device__ State init() const { return State::none(); }
    __device__ State reduce(State s, Element x, int64_t) const { return with_factor(s, (double)x); }
    __device__ State combine(State a, State b) const { return joined_factors(a, b); }
    __device__ void put(char *out, State s) const { *(State *)out = s; }
};

template <class C>
struct SpreadProduct {
    __device__ double operator()(C g, C x, Factors all) const
    {
        return all.others((double)g, (double)x);
    }
};

YOKE_KERNEL(_prod_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    if (x.numel == 0) return YOKE_OK;
    return for_float_format(launch, "x", x.dtype, [&]<class In>() {
        using C = typename In::Value;
        PerResult products(launch);
        if (yoke_status status = products.reserve<Factors>(grad)) return status;
        const ReduceAxes axes = axes_beside(grad, x, products.operand);
        if (yoke_status status = reduce<In>(launch, axes, AllFactors<C>())) return status;
        return spread<In, C, Factors>(launch, out, SpreadProduct<C>(), grad, x, products.operand);
    });
}

YOKE_CUDA_END
