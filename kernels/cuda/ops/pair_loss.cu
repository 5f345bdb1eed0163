// Losses of two broadcast tensors: element by element, or summed in the computing type at once, so a half neither
// overflows nor rounds in between. The kernel selects the loss at run time, because it waits for memory anyway.
#include "kernels/common/pair_loss.h"
#include "kernels/common/reduce.h"

#include "core/backend/ops.inc"
#include "kernels/common/stand_in.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/careful.cuh"
#include "kernels/cuda/ops/map.cuh"

YOKE_CUDA_BEGIN

using Kind = kernels::PairLoss;

static yoke_status kind_of(const yoke_launch *launch, Kind *kind)
{
    const char *name = launch->params[0].v.string;
    *kind = kernels::pair_loss_named(name);
    return *kind != Kind::kNone
               ? (yoke_status)YOKE_OK
               : fail(YOKE_E_INTERNAL, 0, "%s: there is no loss \"%s\"", op_name(launch->op), name);
}

// Calls f(functor) with the functor of a kind, and returns the result.
template <class F>
__device__ inline auto with_kind(Kind kind, double beta, const F &f)
{
    switch (kind) {
        YOKE_PAIR_LOSSES(YOKE_PAIR_LOSS_CASE)
        default:
            return f(kernels::KlDivergenceOfLogs());
    }
}

// Reporter of values outside [0, 1], and of NaN. A report has only integers: the parts of a decimal.
struct ProbabilityCheck {
    Reporter above, below, nan;
    bool checks;

    ProbabilityCheck(const yoke_launch *launch, Kind kind)
        : above(reporter(
              launch,
              "%s: argument 'x' has an element of %lld.%06lld; probabilities must be between 0 and 1 (for logits, call binary_cross_entropy_with_logits)",
              YOKE_E_VALUE)),
          below(above),
          nan(above),
          checks(kind == Kind::kProbabilities)
    {
        below.format =
            "%s: argument 'x' has an element of -%lld.%06lld; probabilities must be between 0 and 1 (for logits, call binary_cross_entropy_with_logits)";
        nan.format =
            "%s: argument 'x' has an element of nan; probabilities must be between 0 and 1 (for logits, call binary_cross_entropy_with_logits)";
        above.op = below.op = nan.op = YOKE_OP_BINARY_CROSS_ENTROPY;
    }
    // Reports one of the values that are NaN or outside [0, 1], if there are any. Does nothing for losses without
    // such a rule.
    template <int N, class C>
    __device__ void look_at(const C (&all)[N]) const
    {
        if (!checks) return;
        C x = all[0];
        YOKE_UNROLL
        for (int k = 1; k < N; k++) x = kernels::select(x >= (C)0 && x <= (C)1, all[k], x);
        if (x >= (C)0 && x <= (C)1) return;
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

template <class C>
struct LossValue {
    static constexpr bool kIsSeldom = true;
    Kind kind;
    double beta;

    template <class Body>
    __device__ void with(const Body &body) const
    {
        with_kind(kind, beta, [&](const auto &loss) {
            body([&](C x, C target) { return loss.value(x, target); });
        });
    }
};

template <class C>
struct LossSlope {
    static constexpr bool kIsSeldom = true;
    Kind kind;
    double beta;
    C scale;
    bool of_target;

    template <class Body>
    __device__ void with(const Body &body) const
    {
        with_kind(kind, beta, [&](const auto &loss) {
            body([&](C grad, C x, C target) {
                constexpr int kFactor = kernels::kSlopeFactor<std::decay_t<decltype(loss)>>;
                return grad * scale *
                       (of_target ? loss.of_target(x, target) : loss.of_x(x, target)) * (C)kFactor;
            });
        });
    }
};

// ---- values, and their sum ---------------------------------------------------------------------------------------

template <class C>
using LossSum = typename kernels::FloatSum<C>::State;

template <int N, class C>
__device__ inline LossSum<C> sum_of(const C (&x)[N])
{
    const kernels::FloatSum<C> add;
    C sum = x[0];
    YOKE_UNROLL
    for (int k = 1; k < N; k++) sum += x[k];
    return state_of_part(add, sum, x);
}

template <class C>
__device__ inline LossSum<C> whole_sum(const LossSum<C> &sum)
{
    const kernels::FloatSum<C> add;
    return reduce_block(sum, add.init(), [&](const LossSum<C> &a, const LossSum<C> &b) {
        return add.combine(a, b);
    });
}

// Computes each loss or, if there is a place for sums, each block's sum. In the second case the plan's result is only
// a shape, without memory.
template <class In, class C>
__global__ void each_loss(MapPlan<2> plan, LossValue<C> loss, ProbabilityCheck check,
                          LossSum<C> *sums)
{
    constexpr int N = kAtOnce<C>;
    constexpr std::make_index_sequence<2> kInputs;
    const kernels::FloatSum<C> add;
    LossSum<C> sum = add.init();
    for (int64_t pack = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; pack < plan.packs;
         pack += (int64_t)gridDim.x * blockDim.x) {
        C x[2][N], part[N];
        take_pack<In>(plan, pack, x);
        check.look_at(x[0]);
        apply(loss, x, part, kInputs);
        if (sums)
            sum = add.combine(sum, sum_of(part));
        else
            put<In>(plan.side[0], plan.place_of(pack, N), plan.apart, part);
    }
    walk_elements(plan.walk, [&](int64_t, const Place<3> &place) {
        C x[2][1], part[1];
        take_element<In>(plan, place, x);
        check.look_at(x[0]);
        apply(loss, x, part, kInputs);
        if (sums)
            sum = add.combine(sum, add.state(part[0]));
        else
            put_one<In>(plan.side[0].dtype, place.data[0], part[0]);
    });
    if (!sums) return;
    sum = whole_sum<C>(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class Out, class C>
__global__ void divide_sum(const LossSum<C> *sums, int64_t count, double divisor, char *out,
                           int dtype)
{
    const kernels::FloatSum<C> add;
    LossSum<C> sum = add.init();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum = add.combine(sum, sums[i]);
    sum = whole_sum<C>(sum);
    if (threadIdx.x == 0) put_one<Out>(dtype, out, add.mean(sum, divisor));
}

template <class In, class C>
static yoke_status reduced_loss(const yoke_launch *launch, const LossValue<C> &loss,
                                const ProbabilityCheck &check, double divisor)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const kernels::BroadcastShape shape(x, target, nullptr);
    const int threads = block_size(kThreads);
    const int64_t n = shape.operand.numel,
                  blocks = blocks_for(launch, n, (int64_t)threads * kAtOnce<C>);
    Scratch scratch(launch);
    if (const yoke_status status = scratch.reserve((uint64_t)blocks * sizeof(LossSum<C>)))
        return status;
    auto *sums = scratch.as<LossSum<C>>();
    if (n > 0) {
        const MapPlan<2> plan = plan_map<In, In, 2>({&shape.operand, &x, &target});
        if (const yoke_status status =
                start(launch, each_loss<In, C>, {blocks, threads}, plan, loss, check, sums))
            return status;
    }
    return start(launch, divide_sum<In, C>, {1, block_size(512)}, (const LossSum<C> *)sums,
                 n > 0 ? blocks : (int64_t)0, divisor, data_of<char>(out), out.dtype);
}

YOKE_KERNEL(_pair_loss)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[2];
    const yoke_arg *p = launch->params;
    Kind kind = Kind::kMse;
    if (const yoke_status status = kind_of(launch, &kind)) return status;
    return for_float_format(launch, "x", x.dtype, [&]<class In>() {
        const LossValue<typename In::Value> loss{kind, float_param(p[1])};
        const ProbabilityCheck check(launch, kind);
        if (p[2].v.i != 0) return reduced_loss<In>(launch, loss, check, float_param(p[3]));
        if (out.numel == 0) return (yoke_status)YOKE_OK;
        const MapPlan<2> plan = plan_map<In, In, 2>({&out, &x, &launch->operands[1]});
        return start(launch, each_loss<In, typename In::Value>,
                     map_grid(launch, plan, out.numel, kAtOnce<typename In::Value>), plan, loss,
                     check, (LossSum<typename In::Value> *)nullptr);
    });
}

YOKE_KERNEL(_pair_loss_backward)
{
    const yoke_arg *p = launch->params;
    Kind kind = Kind::kMse;
    if (const yoke_status status = kind_of(launch, &kind)) return status;
    return for_float_format(launch, "x", launch->operands[1].dtype, [&]<class In>() {
        using C = typename In::Value;
        return ternary<In>(launch, LossSlope<C>{kind, float_param(p[1]), (C)(1 / float_param(p[2])),
                                                p[3].v.i != 0});
    });
}

YOKE_CUDA_END
