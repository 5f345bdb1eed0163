// Losses of two broadcast tensors: element by element, or summed in the computing type as they are made, so that a half
// neither overflows nor rounds on the way. Which loss it is, a kernel is told: it waits for memory anyway.
#include "kernels/common/pair_loss.h"

#include "core/backend/ops.inc"
#include "kernels/cuda/fault.h"
#include "kernels/cuda/map.cuh"

YOKE_CUDA_BEGIN

enum class Kind { kMse, kL1, kSmoothL1, kLogits, kProbabilities, kKl, kKlOfLogs };

static yoke_status kind_of(const yoke_launch *launch, Kind *kind)
{
    static const char *const names[] = {"mse", "l1", "smooth_l1", "bce_logits",
                                        "bce", "kl", "kl_log"};
    const char *name = launch->params[0].v.string;
    for (int i = 0; i < 7; i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (Kind)i;
            return YOKE_OK;
        }
    return fail(YOKE_E_INTERNAL, 0, "%s: there is no loss \"%s\"", op_name(launch->op), name);
}

// f(functor) with the functor of a kind.
template <class F>
__device__ inline auto with_kind(Kind kind, double beta, const F &f)
{
    switch (kind) {
        case Kind::kMse:
            return f(kernels::SquaredError());
        case Kind::kL1:
            return f(kernels::AbsoluteError());
        case Kind::kSmoothL1:
            return f(kernels::SmoothL1{beta});
        case Kind::kLogits:
            return f(kernels::LogitCrossEntropy());
        case Kind::kProbabilities:
            return f(kernels::BinaryCrossEntropy());
        case Kind::kKl:
            return f(kernels::KlDivergence());
        default:
            return f(kernels::KlDivergenceOfLogs());
    }
}

// What is no probability, NaN included, is told. Only numbers travel: the parts of a decimal.
struct ProbabilityCheck {
    Reporter above, below, nan;
    bool checks;

    ProbabilityCheck(const yoke_launch *launch, Kind kind)
        : above(reporter(launch,
                         "%s: 'x' has the element %lld.%06lld; probabilities lie between 0 and 1 "
                         "(logits are for binary_cross_entropy_with_logits)",
                         YOKE_E_VALUE)),
          below(above),
          nan(above),
          checks(kind == Kind::kProbabilities)
    {
        below.format =
            "%s: 'x' has the element -%lld.%06lld; probabilities lie between 0 and 1 (logits are "
            "for binary_cross_entropy_with_logits)";
        nan.format =
            "%s: 'x' has the element nan; probabilities lie between 0 and 1 "
            "(logits are for binary_cross_entropy_with_logits)";
        above.op = below.op = nan.op = YOKE_OP_BINARY_CROSS_ENTROPY;
    }
    template <class C>
    __device__ void look_at(C x) const
    {
        if (!checks || (x >= (C)0 && x <= (C)1)) return;
        if (x != x) return report(nan, 0, 0, 0);
        const double size = x < (C)0 ? -(double)x : (double)x, most = 9e12;
        const double held = size < most ? size : most;
        const int64_t whole = (int64_t)held;
        const auto millionths = (int64_t)((held - (double)whole) * 1e6 + 0.5);
        if (x < (C)0)
            report(below, whole, millionths, 0);
        else
            report(above, whole, millionths, 0);
    }
};

template <class T>
struct LossValue {
    using C = compute_type<T>;
    Kind kind;
    double beta;
    ProbabilityCheck check;

    __device__ C value(T x, T target) const
    {
        const C a = load<T>(x), b = load<T>(target);
        check.look_at(a);
        return with_kind(kind, beta, [=](const auto &f) -> C { return f.value(a, b); });
    }
    __device__ T operator()(T x, T target) const { return store<T>(value(x, target)); }
};

template <class T>
struct LossSlope {
    using C = compute_type<T>;
    Kind kind;
    double beta;
    C scale;
    bool of_target;

    __device__ T operator()(T grad, T x, T target) const
    {
        const C g = load<T>(grad), a = load<T>(x), b = load<T>(target);
        const bool second = of_target;
        const C slope = with_kind(kind, beta, [=](const auto &f) -> C {
            return second ? f.of_target(a, b) : f.of_x(a, b);
        });
        return store<T>(g * scale * slope);
    }
};

// ---- sums ---------------------------------------------------------------------------------------------------------

template <class C>
__device__ inline void put_sum(C sum, C *sums)
{
    sum = reduce_block(sum, (C)0, [](C a, C b) { return a + b; });
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Each block's sum, of elements that lie in two runs.
template <class T>
__global__ void sum_runs(const T *x, const T *target, int64_t n, int64_t packs, LossValue<T> loss,
                         compute_type<T> *sums)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>;
    const int64_t step = (int64_t)gridDim.x * blockDim.x,
                  first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    C sum = (C)0;
    for (int64_t i = first; i < packs; i += step) {
        const Pack<T, V> a = load_pack<V>(x + i * V), b = load_pack<V>(target + i * V);
        C part = (C)0;
        YOKE_UNROLL
        for (int k = 0; k < V; k++) part += loss.value(a.at[k], b.at[k]);
        sum += part;
    }
    for (int64_t i = packs * V + first; i < n; i += step) sum += loss.value(x[i], target[i]);
    put_sum(sum, sums);
}

template <class T>
__global__ void sum_strided(Walk<3> walk, LossValue<T> loss, compute_type<T> *sums)
{
    compute_type<T> sum = 0;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < walk.numel; i += step) {
        const Place<3> place = walk.at(i);
        sum += loss.value(*(const T *)place.data[1], *(const T *)place.data[2]);
    }
    put_sum(sum, sums);
}

template <class T>
__global__ void divide_sum(const compute_type<T> *sums, int64_t count, double divisor, T *out)
{
    using C = compute_type<T>;
    C sum = (C)0;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i];
    sum = reduce_block(sum, (C)0, [](C a, C b) { return a + b; });
    if (threadIdx.x == 0) *out = store<T>(sum / (C)divisor);
}

// The shape to which two operands broadcast, as an operand with no memory behind it.
struct BroadcastShape {
    yoke_operand operand{};
    int64_t shape[YOKE_MAX_NDIM], strides[YOKE_MAX_NDIM] = {};

    BroadcastShape(const yoke_operand &x, const yoke_operand &y)
    {
        const int ndim = x.ndim > y.ndim ? x.ndim : y.ndim;
        operand.numel = 1;
        for (int axis = 0; axis < ndim; axis++) {
            const int of_x = axis - (ndim - x.ndim), of_y = axis - (ndim - y.ndim);
            const int64_t a = of_x < 0 ? 1 : x.shape[of_x], b = of_y < 0 ? 1 : y.shape[of_y];
            operand.numel *= shape[axis] = a == 1 ? b : a;
        }
        operand.shape = shape;
        operand.strides = strides;
        operand.ndim = ndim;
        operand.dtype = x.dtype;
    }
    BroadcastShape(const BroadcastShape &) = delete;
    BroadcastShape &operator=(const BroadcastShape &) = delete;
};

template <class T>
static yoke_status reduced_loss(const yoke_launch *launch, const LossValue<T> &loss, double divisor)
{
    using C = compute_type<T>;
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const BroadcastShape shape(x, target);
    const int threads = block_size(kThreads);
    const int64_t n = shape.operand.numel,
                  blocks = blocks_for(launch, n, (int64_t)threads * kPackLength<T>);
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve((uint64_t)blocks * sizeof(C))) return status;
    C *sums = scratch.as<C>();
    Loop<3> loop;
    plan_loop<3>(loop, {&shape.operand, &x, &target});
    const bool runs = n > 0 && loop.ndim == 1 && loop.stride[0][1] == (int64_t)sizeof(T) &&
                      loop.stride[0][2] == (int64_t)sizeof(T);
    yoke_status status = YOKE_OK;
    if (runs) {
        const auto *xs = reinterpret_cast<const T *>(loop.data[1]),
                   *targets = reinterpret_cast<const T *>(loop.data[2]);
        const bool packed = is_aligned(xs, 16) && is_aligned(targets, 16);
        status = start(launch, sum_runs<T>, {blocks, threads}, xs, targets, n,
                       packed ? n / kPackLength<T> : (int64_t)0, loss, sums);
    } else if (n > 0) {
        status = start(launch, sum_strided<T>, {blocks, threads}, Walk<3>(loop), loss, sums);
    }
    if (status) return status;
    return start(launch, divide_sum<T>, {1, block_size(512)}, sums, n > 0 ? blocks : (int64_t)0,
                 divisor, data_of<T>(launch->operands[2]));
}

YOKE_KERNEL(_pair_loss)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const yoke_arg *p = launch->params;
    Kind kind = Kind::kMse;
    if (const yoke_status status = kind_of(launch, &kind)) return status;
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        const LossValue<T> loss{kind, float_param(p[1]), ProbabilityCheck(launch, kind)};
        if (p[2].v.i != 0) return reduced_loss<T>(launch, loss, float_param(p[3]));
        return map<T>(launch, out, loss, Input<T>(x), Input<T>(target));
    });
}

YOKE_KERNEL(_pair_loss_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    Kind kind = Kind::kMse;
    if (const yoke_status status = kind_of(launch, &kind)) return status;
    return for_float(launch, "x", o[1].dtype, [&]<class T>() {
        using C = compute_type<T>;
        const LossSlope<T> slope{kind, float_param(p[1]), (C)(1 / float_param(p[2])),
                                 p[3].v.i != 0};
        return map<T>(launch, o[3], slope, Input<T>(o[0]), Input<T>(o[1]), Input<T>(o[2]));
    });
}

YOKE_CUDA_END
