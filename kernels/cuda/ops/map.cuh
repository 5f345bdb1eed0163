// Elementwise kernels: a functor over operands of any strides and dtypes, with one read and one write of each
// element.
//
// Contract
//  * map<In>(launch, out, f, inputs…) sets out[i] = f(inputs[i]…) over values of the format In (formats.cuh). The
//    inputs broadcast to out's shape, and an input may be out. Each input is a tensor or a script's number.
//  * f takes and gives In::Value. If the format of out, map<In, Out>, is Bools, f gives bool. A functor with a member
//    with(body) stands for several functors: it calls body(functor) with the launch's functor.
//  * Operands that are runs, or a single value, go in packs of 16 bytes; other operands go by walk.cuh.
#pragma once

#include "kernels/cuda/ops/formats.cuh"
#include "kernels/cuda/ops/functors.cuh"
#include "kernels/cuda/ops/walk.cuh"

YOKE_CUDA_BEGIN

// ---- operands -------------------------------------------------------------------------------------------------------

// Operand for a kernel: a run, a value in memory, or a script's number. Other operands are reached by a walk.
struct Side {
    char *data;
    uint64_t number;  // its bits
    int dtype, size;
    bool is_number, is_run;
};

// Plan of a map. Operand 0 is the result, the others are the inputs.
template <int K>
struct MapPlan {
    Walk<1 + K> walk;  // over what no pack takes
    Side side[1 + K];
    int64_t packs, apart;
    __device__ int64_t place_of(int64_t pack, int n) const { return place_of_pack(pack, n, apart); }
};

template <class In, class C>
__device__ inline void take_one(const Side &side, const char *place, C (&to)[1])
{
    Stored<In, 1> stored;
    if (side.is_number)
        memcpy(stored.words, &side.number, sizeof stored.words);
    else
        stored.load(place, side.size);
    stored.unpack(side.dtype, to);
}

template <class In, int N>
__device__ inline void load_run(const Side &side, int64_t i, int64_t apart, Stored<In, N> &to)
{
    if (side.is_run) to.load(side.data, side.size, i, apart);
}

template <class In, int N, class C>
__device__ inline void take(const Side &side, const Stored<In, N> &stored, C (&to)[N])
{
    if (side.is_run) return stored.unpack(side.dtype, to);
    C same[1];
    take_one<In>(side, side.data, same);
    YOKE_UNROLL
    for (int k = 0; k < N; k++) to[k] = same[0];
}

template <class Out, int N, class R>
__device__ inline void put(const Side &side, int64_t i, int64_t apart, const R (&from)[N])
{
    put_run<Out>(side.data, side.dtype, i, apart, from);
}

// Reads the inputs of a pack as values.
template <class In, int K, int N, class C>
__device__ inline void take_pack(const MapPlan<K> &plan, int64_t pack, C (&x)[K][N])
{
    const int64_t i = plan.place_of(pack, N);
    Stored<In, N> stored[K];
    YOKE_UNROLL
    for (int k = 0; k < K; k++) load_run(plan.side[1 + k], i, plan.apart, stored[k]);
    YOKE_UNROLL
    for (int k = 0; k < K; k++) take(plan.side[1 + k], stored[k], x[k]);
}

// Reads the inputs of a single element as values.
template <class In, int K, class C>
__device__ inline void take_element(const MapPlan<K> &plan, const Place<1 + K> &place, C (&x)[K][1])
{
    YOKE_UNROLL
    for (int k = 0; k < K; k++) take_one<In>(plan.side[1 + k], place.data[1 + k], x[k]);
}

// ---- the kernel -----------------------------------------------------------------------------------------------------

template <class In, class Out>
using MapResult = std::conditional_t<std::is_same_v<Out, Bools>, bool, typename In::Value>;

// Elements that a thread takes at once. Seldom functors of integers take fewer, as each dtype has code for packs.
template <class In, class F>
constexpr int kTaken =
    kIsSeldom<F> &&std::is_same_v<In, Integers> ? 2 : kAtOnce<typename In::Value>;

// Blocks that a multiprocessor is to hold, as many as registers permit without spilling.
template <class In, int K>
inline constexpr int kMapResident =
    kFitting<sizeof(typename In::Value) == 8 ? 2 : std::max(2, 8 - 2 * K), kThreads>;

template <class In, class Out, int K, class F>
__global__ void __launch_bounds__(kThreads, kMapResident<In, K>) map_elements(MapPlan<K> plan, F f)
{
    using C = typename In::Value;
    using R = MapResult<In, Out>;
    constexpr int N = kTaken<In, F>;
    constexpr std::make_index_sequence<K> kInputs;
    for (int64_t pack = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; pack < plan.packs;
         pack += (int64_t)gridDim.x * blockDim.x) {
        C x[K][N];
        R y[N];
        take_pack<In>(plan, pack, x);
        apply(f, x, y, kInputs);
        put<Out>(plan.side[0], plan.place_of(pack, N), plan.apart, y);
    }
    walk_elements(plan.walk, [&](int64_t, const Place<1 + K> &place) {
        C x[K][1];
        R y[1];
        take_element<In>(plan, place, x);
        apply(f, x, y, kInputs);
        put_one<Out>(plan.side[0].dtype, place.data[0], y[0]);
    });
}

// ---- plans ----------------------------------------------------------------------------------------------------------

// Plans the loop. Operands that are runs without gaps, or a single value, have a single axis after axes are joined.
template <int N>
inline void plan_map_loop(Loop<N> &loop, const yoke_operand *const (&operands)[N])
{
    const int64_t n = operands[0]->numel;
    for (const yoke_operand *operand : operands)
        if (!is_run_or_value(*operand, n)) return plan_loop<N>(loop, operands);
    loop.ndim = 1;
    loop.numel = loop.shape[0] = n;
    for (int i = 0; i < N; i++) {
        loop.data[i] = data_of<char>(*operands[i]);
        loop.stride[0][i] = operands[i]->numel == 1 && n != 1 ? 0 : dtype_size(operands[i]->dtype);
    }
}

// Returns how many elements go in packs of n. `apart` becomes the distance between the halves of a pack. Returns 0 if
// the operands do not suit packs.
template <int N>
inline int64_t plan_packs(const Loop<N> &loop, const int64_t (&sizes)[N], int n, int64_t &apart)
{
    if (loop.ndim != 1 || loop.stride[0][0] != sizes[0]) return 0;
    int64_t widest = 1;
    for (int i = 0; i < N; i++)
        if (loop.stride[0][i]) widest = max(widest, sizes[i]);
    const bool together = widest * n <= 16;
    for (int i = 0; i < N; i++) {
        if (loop.stride[0][i] == 0) continue;
        const int64_t bytes = min(16, sizes[i] * (together ? n : n / 2));
        if (loop.stride[0][i] != sizes[i] || !is_aligned(loop.data[i], bytes)) return 0;
    }
    apart = together ? n / 2 : halves_apart(n);
    const int64_t unit = together ? n : kWarp * n;
    return loop.numel / unit * unit;
}

// Plans a map in packs of n elements. `dtypes` are those under which formats handle the operands.
template <int K>
inline MapPlan<K> plan_map_of(const yoke_operand *const (&operands)[1 + K],
                              const int (&dtypes)[1 + K], int n)
{
    Loop<1 + K> loop;
    plan_map_loop<1 + K>(loop, operands);
    int64_t sizes[1 + K], apart = 0;
    for (int i = 0; i <= K; i++) sizes[i] = dtype_size(operands[i]->dtype);
    const int64_t packed = plan_packs<1 + K>(loop, sizes, n, apart);
    Side sides[1 + K];
    for (int i = 0; i <= K; i++) {
        const yoke_operand &operand = *operands[i];
        sides[i] = {loop.data[i],
                    operand.immediate,
                    dtypes[i],
                    (int)sizes[i],
                    (operand.flags & YOKE_OPERAND_SCALAR) != 0,
                    loop.stride[0][i] != 0};
        loop.data[i] += packed * loop.stride[0][i];
    }
    if (packed) loop.numel = loop.shape[0] -= packed;
    MapPlan<K> plan{Walk<1 + K>(loop), {}, packed / n, apart};
    for (int i = 0; i <= K; i++) plan.side[i] = sides[i];
    return plan;
}

template <class In, class Out, int K, int N = kAtOnce<typename In::Value>>
inline MapPlan<K> plan_map(const yoke_operand *const (&operands)[1 + K])
{
    int dtypes[1 + K];
    dtypes[0] = as_format<Out>(operands[0]->dtype);
    for (int i = 1; i <= K; i++) dtypes[i] = as_format<In>(operands[i]->dtype);
    return plan_map_of<K>(operands, dtypes, N);
}

// Returns the grid for a plan of n elements. A pack has `at_once` elements.
template <int K>
inline Grid map_grid(const yoke_launch *launch, const MapPlan<K> &plan, int64_t n, int at_once)
{
    if (plan.packs == 0) return walk_grid(launch, plan.walk);
    const int threads = block_size(kThreads);
    return {blocks_for(launch, n, threads * at_once), threads};
}

template <class In, class Out = In, class F, class... Operands>
inline yoke_status map(const yoke_launch *launch, const yoke_operand &out, const F &f,
                       const Operands &...in)
{
    constexpr int K = (int)sizeof...(Operands), N = kTaken<In, F>;
    if (out.numel == 0) return YOKE_OK;
    const MapPlan<K> plan = plan_map<In, Out, K, N>({&out, &in...});
    return start(launch, map_elements<In, Out, K, F>, map_grid(launch, plan, out.numel, N), plan,
                 f);
}

template <class In, class Out = In, class F>
inline yoke_status unary(const yoke_launch *launch, const F &f)
{
    const yoke_operand *x = launch->operands;
    return map<In, Out>(launch, x[1], f, x[0]);
}

template <class In, class Out = In, class F>
inline yoke_status binary(const yoke_launch *launch, const F &f)
{
    const yoke_operand *x = launch->operands;
    return map<In, Out>(launch, x[2], f, x[0], x[1]);
}

template <class In, class F>
inline yoke_status ternary(const yoke_launch *launch, const F &f)
{
    const yoke_operand *x = launch->operands;
    return map<In>(launch, x[3], f, x[0], x[1], x[2]);
}

// ---- the lines of kernels/common/pointwise_ops.h --------------------------------------------------------------------

// A file that uses these macros defines YOKE_GROUPS, the list of OneOf with all its functors.
#define YOKE_POINTWISE(name, types, call)                             \
    YOKE_KERNEL(name)                                                 \
    {                                                                 \
        return types##_format(launch, "x", launch->operands[0].dtype, \
                              [&]<class In>() { return call; });      \
    }
#define YOKE_UNARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, (unary<In>(launch, one_of<kernels::F, YOKE_GROUPS>())))
#define YOKE_BINARY(name, types, F, grain) \
    YOKE_POINTWISE(name, types, (binary<In>(launch, one_of<kernels::F, YOKE_GROUPS>())))
#define YOKE_WITH_PARAMS(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float,           \
                   (unary<In>(launch, one_of<kernels::F, YOKE_GROUPS>(__VA_ARGS__))))
#define YOKE_WITH_PARAMS_BACKWARD(name, F, grain, ...) \
    YOKE_POINTWISE(name, for_float,                    \
                   (binary<In>(launch, one_of<kernels::F, YOKE_GROUPS>(__VA_ARGS__))))
#define YOKE_TEST(name, F) \
    YOKE_POINTWISE(name, for_any, (unary<In, Bools>(launch, one_of<kernels::F, YOKE_GROUPS>())))
#define YOKE_COMPARISON(name, F) \
    YOKE_POINTWISE(name, for_any, (binary<In, Bools>(launch, one_of<kernels::F, YOKE_GROUPS>())))

YOKE_CUDA_END
