// Cross entropy of logits and class indices, and its gradient: each is a pass over the logits, without a stored
// softmax.
#include "kernels/cuda/ops/approximate.cuh"
#include "kernels/cuda/ops/loss_sum.cuh"

YOKE_CUDA_BEGIN

using kernels::Larger;
using kernels::SoftmaxState;

// State of a thread over its part of a row, and the sum of its logits for label smoothing.
template <class T>
struct LogitState {
    using C = compute_type<T>;
    SoftmaxState<C> softmax{-(C)kernels::kInfinity, (C)0};
    C sum = 0;

    // Adds N values, with a single rescaling for all.
    template <int N>
    __device__ void push(const C (&x)[N])
    {
        SoftmaxState<C> next{softmax.max, (C)0};
        YOKE_UNROLL
        for (int k = 0; k < N; k++) next.max = Larger()(next.max, x[k]);
        const C shift = next.shift();
        YOKE_UNROLL
        for (int k = 0; k < N; k++) next.sum += exp_as_stored<FormatOfStored<T>>(x[k] - shift);
        next.sum += softmax.sum * kernels::exp_not_large(softmax.max - shift);
        softmax = next;
    }
    // Joins the states of all threads of a group. The first thread gets the result.
    __device__ void join(int group, bool sums)
    {
        const C own = softmax.max;
        softmax.max = reduce_group(own, group, -(C)kernels::kInfinity, Larger());
        const C rescaled = softmax.sum * kernels::exp_not_large(own - softmax.shift());
        softmax.sum = sum_group(rescaled, group);
        if (sums) sum = sum_group(sum, group);
    }
};

// Returns a thread's state over its part of a row. If `sums`, the state has the sum of the logits too. A group's
// threads go over their row, four packs at a time.
template <class T>
__device__ inline LogitState<T> state_of_row(const ClassRows<T> &x, int64_t row,
                                             const Member &member, bool sums)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>, kPacks = 4;
    constexpr C kBeyond = -(C)kernels::kInfinity;
    const int64_t apart = (int64_t)member.group * V;
    const int skew = x.skew(row);
    const ClassRow<T> from(x, row, skew);
    LogitState<T> state;
    for (int64_t i = member.in_group * V - skew; i < x.count; i += apart * kPacks) {
        typename ClassRow<T>::Raw raw[kPacks];
        YOKE_UNROLL
        for (int p = 0; p < kPacks; p++) raw[p] = from.load(i + p * apart, kBeyond);
        C logits[kPacks * V];
        YOKE_UNROLL
        for (int p = 0; p < kPacks; p++) {
            C pack[V];
            ClassRow<T>::unpack(raw[p], pack);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) {
                logits[p * V + k] = pack[k];
                if (sums && from.has(i + p * apart + k)) state.sum += pack[k];
            }
        }
        state.push(logits);
    }
    return state;
}

// Least blocks on a multiprocessor. For f64 this is 1: if the compiler may choose (0), it makes room for two blocks
// and spills.
template <class T>
inline constexpr int kBlocksOf = sizeof(T) == 8 ? 1 : 0;

template <class T>
__global__ void __launch_bounds__(kMostThreads, kBlocksOf<T>)
    row_losses(ClassRows<T> x, Targets targets, compute_type<T> smoothing, LossPlace<T> to,
               compute_type<T> *norms, int group)
{
    using C = compute_type<T>;
    const Member member(group);
    const bool smooths = smoothing != 0;
    for (int64_t first = blockIdx.x * member.groups(); first < targets.count;
         first += gridDim.x * member.groups()) {
        const int64_t row = first + member.number();
        LogitState<T> state;
        if (row < targets.count) state = state_of_row(x, row, member, smooths);
        state.join(group, smooths);
        if (member.in_group > 0 || row >= targets.count) continue;
        const SoftmaxState<C> softmax = state.softmax;
        norms[2 * row] = softmax.max;
        norms[2 * row + 1] = kernels::log(softmax.sum);
        const int64_t index = targets.class_of(row, true);
        C loss = (C)0;
        if (index >= 0) loss = softmax.cross_entropy(x.at(row, index));
        if (index >= 0 && smooths) {
            const C uniform = softmax.cross_entropy(state.sum / (C)x.count);
            loss += smoothing * (uniform - loss);
        }
        to.put(row, loss);
    }
}

template <class T>
static yoke_status total_loss(const yoke_launch *launch, const Call &call)
{
    using C = compute_type<T>;
    const yoke_operand *o = launch->operands;
    const Targets &targets = call.targets;
    RowLosses<T> losses(launch, call);
    if (const yoke_status status = losses.reserve()) return status;
    const Sharing sharing = share_classes(targets.classes, kPackLength<T>);
    if (targets.count)
        if (const yoke_status status =
                start(launch, row_losses<T>, row_grid(launch, targets.count, sharing),
                      ClassRows<T>(o[0]), targets, (C)float_param(launch->params[2]),
                      losses.place(o[2]), data_of<C>(o[3]), sharing.group))
            return status;
    return losses.add(o[2], o[4]);
}

YOKE_KERNEL(_cross_entropy)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    if (const yoke_status status = check_target(launch, target)) return status;
    const yoke_dtype loss = launch->operands[2].dtype;
    if (loss != x.dtype) return bad_dtype(launch, "the result", loss);
    const Call call(launch, x, target, YOKE_OP_CROSS_ENTROPY);
    return for_float(launch, "x", x.dtype, [&]<class T>() { return total_loss<T>(launch, call); });
}

// ---- the gradient ------------------------------------------------------------------------------------------------

// Gradient of a row's logits: g (p_j - smoothing / classes), and at the target another -g (1 - smoothing).
template <class T>
struct LogitSlope {
    using C = compute_type<T>;
    C most, log_sum;  // their sum would be off by a rounding of the greater
    C share, rest, g;
    int64_t target;  // -1 where the row does not count

    template <int V>
    __device__ void apply(int64_t i, C (&x)[V]) const
    {
        YOKE_UNROLL
        for (int k = 0; k < V; k++)
            x[k] = exp_as_stored<FormatOfStored<T>>((x[k] - most) - log_sum) - share;
        if (target >= i && target < i + V) {
            YOKE_UNROLL
            for (int k = 0; k < V; k++)
                if (i + k == target) x[k] -= rest;
        }
        YOKE_UNROLL
        for (int k = 0; k < V; k++) x[k] = target < 0 ? (C)0 : g * x[k];
    }
};

template <class T>
__global__ void __launch_bounds__(kMostThreads, kBlocksOf<T>)
    logit_gradients(ClassRows<T> x, Targets targets, Upstream<T> upstream,
                    const compute_type<T> *norms, double smoothing, ClassRows<T> dx, int group)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>, kPacks = 2;
    const Member member(group);
    const int64_t apart = (int64_t)group * V;
    const C share = (C)(smoothing / (double)x.count), rest = (C)(1 - smoothing);
    for (int64_t row = blockIdx.x * member.groups() + member.number(); row < targets.count;
         row += gridDim.x * member.groups()) {
        const int64_t index = targets.class_of(row, member.in_group == 0);
        const LogitSlope<T> slope{
            norms[2 * row], norms[2 * row + 1], share, rest, index < 0 ? (C)0 : upstream.at(row),
            index};
        const int skew = x.skew(row);
        const ClassRow<T> from(x, row, skew), to(dx, row, skew);
        for (int64_t i = member.in_group * V - skew; i < x.count; i += apart * kPacks) {
            typename ClassRow<T>::Raw raw[kPacks];
            YOKE_UNROLL
            for (int p = 0; p < kPacks; p++) raw[p] = from.load(i + p * apart, (C)0);
            YOKE_UNROLL
            for (int p = 0; p < kPacks; p++) {
                C y[V];
                ClassRow<T>::unpack(raw[p], y);
                slope.apply(i + p * apart, y);
                to.put(i + p * apart, y);
            }
        }
    }
}

YOKE_KERNEL(_cross_entropy_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &grad = o[0], &x = o[1], &target = o[2], &norms = o[3], &dx = o[5];
    if (const yoke_status status = check_target(launch, target)) return status;
    if (grad.dtype != x.dtype) return bad_dtype(launch, "grad", grad.dtype);
    const Call call(launch, x, target, YOKE_OP_CROSS_ENTROPY);
    if (x.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        const Sharing sharing = share_classes(x.shape[1], kPackLength<T>);
        return start(launch, logit_gradients<T>, row_grid(launch, x.shape[0], sharing),
                     ClassRows<T>(x), call.targets, Upstream<T>(grad, o[4], call.reduction.mean),
                     data_of<const compute_type<T>>(norms), float_param(launch->params[2]),
                     ClassRows<T>(dx), sharing.group);
    });
}

YOKE_CUDA_END
