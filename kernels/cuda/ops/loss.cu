// Cross entropy of logits and class indices, and its gradient: one pass over the logits each, none over a softmax that
// would have to be stored.
#include "kernels/cuda/ops/classes.cuh"

YOKE_CUDA_BEGIN

using kernels::SoftmaxState;

// The state of a row, and the sum of its logits for label smoothing.
template <class C>
struct LogitState {
    SoftmaxState<C> softmax;
    C sum;

    __device__ static LogitState init() { return {SoftmaxState<C>::init(), (C)0}; }
    __device__ static LogitState combine(const LogitState &a, const LogitState &b)
    {
        return {SoftmaxState<C>::combine(a.softmax, b.softmax), a.sum + b.sum};
    }
    // n values in the array, of which `count` are the row's.
    template <int N>
    __device__ void push(const C (&x)[N], int count, bool sums)
    {
        SoftmaxState<C> next{softmax.max, (C)0};
        YOKE_UNROLL
        for (int k = 0; k < N; k++) next.max = kernels::Larger()(next.max, x[k]);
        const C shift = next.shift();
        YOKE_UNROLL
        for (int k = 0; k < N; k++) next.sum += kernels::exp_not_large(x[k] - shift);
        next.sum += softmax.sum * kernels::exp_not_large(softmax.max - shift);
        softmax = next;
        if (sums)
            for (int k = 0; k < N; k++) sum += k < count ? x[k] : (C)0;
    }
};

// A group's threads go over their row pack by pack, four at a time.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    row_losses(Logits<T> x, Targets targets, compute_type<T> smoothing, LossPlace<T> to,
               compute_type<T> *lse, int group)
{
    using C = compute_type<T>;
    using State = LogitState<C>;
    constexpr int V = kPackLength<T>, kPacks = sizeof(T) == 2 ? 2 : 4;
    const int in_group = (int)threadIdx.x % group;
    const int64_t rows_a_block = blockDim.x / group, chunk = (int64_t)group * V;
    for (int64_t first = blockIdx.x * rows_a_block; first < targets.count;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / group;
        State state = State::init();
        for (int64_t i = in_group * V; row < targets.count && i < x.count; i += chunk * kPacks) {
            C logits[kPacks][V];
            YOKE_UNROLL
            for (int p = 0; p < kPacks; p++) x.load(row, i + p * chunk, logits[p]);
            YOKE_UNROLL
            for (int p = 0; p < kPacks; p++)
                state.push(logits[p], (int)max(0, min(V, x.count - i - p * chunk)), smoothing != 0);
        }
        state = reduce_group(state, group, State::init(), State::combine);
        if (in_group > 0 || row >= targets.count) continue;
        const SoftmaxState<C> softmax = state.softmax;
        lse[row] = softmax.max + kernels::log(softmax.sum);
        const int64_t index = targets.class_of(row, true);
        C loss = (C)0;
        if (index >= 0) loss = softmax.cross_entropy(x.at(row, index));
        if (index >= 0 && smoothing != 0) {
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
    Scratch scratch(launch);
    if (!call.reduction.none)
        if (const yoke_status status = scratch.reserve((uint64_t)targets.count * sizeof(C)))
            return status;
    C *losses = scratch.as<C>();
    const Sharing sharing = share_classes(targets.classes, kPackLength<T>);
    if (targets.count)
        if (const yoke_status status =
                start(launch, row_losses<T>, row_grid(targets.count, sharing), Logits<T>(o[0]),
                      targets, (C)float_param(launch->params[2]),
                      LossPlace<T>{losses, data_of<T>(o[2])}, data_of<C>(o[3]), sharing.group))
            return status;
    return start_finish<T>(launch, call, losses, o[2], o[4]);
}

YOKE_KERNEL(cross_entropy)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    if (const yoke_status status = check_target(launch, target)) return status;
    const yoke_dtype loss = launch->operands[2].dtype;
    if (loss != x.dtype) return bad_dtype(launch, "the result", loss);
    const Call call(launch, x, target, YOKE_OP_CROSS_ENTROPY);
    return for_float(launch, "x", x.dtype, [&]<class T>() { return total_loss<T>(launch, call); });
}

// ---- the gradient ------------------------------------------------------------------------------------------------

// g (p_j - smoothing / classes), and at the target another -g (1 - smoothing).
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    logit_gradients(Logits<T> x, Targets targets, Upstream<T> upstream, const compute_type<T> *lse,
                    int64_t lse_step, double smoothing, Gradients<T> dx, int group)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>;
    const int64_t rows_a_block = blockDim.x / group, in_group = threadIdx.x % group;
    const C share = (C)(smoothing / (double)x.count), rest = (C)(1 - smoothing);
    for (int64_t row = blockIdx.x * rows_a_block + threadIdx.x / group; row < targets.count;
         row += gridDim.x * rows_a_block) {
        const int64_t index = targets.class_of(row, in_group == 0);
        const C g = index < 0 ? (C)0 : upstream.at(row), sum = lse[row * lse_step];
        for (int64_t i = in_group * V; i < x.count; i += (int64_t)group * V) {
            C y[V];
            x.load(row, i, y);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) {
                const C p = kernels::exp(y[k] - sum) - share;
                y[k] = index < 0 ? (C)0 : g * (i + k == index ? p - rest : p);
            }
            dx.put(row, i, y);
        }
    }
}

YOKE_KERNEL(_cross_entropy_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &grad = o[0], &x = o[1], &target = o[2], &lse = o[3], &dx = o[5];
    if (const yoke_status status = check_target(launch, target)) return status;
    if (grad.dtype != x.dtype) return bad_dtype(launch, "grad", grad.dtype);
    const Call call(launch, x, target, YOKE_OP_CROSS_ENTROPY);
    if (x.numel == 0) return YOKE_OK;
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        const Sharing sharing = share_classes(x.shape[1], kPackLength<T>);
        return start(launch, logit_gradients<T>, row_grid(x.shape[0], sharing), Logits<T>(x),
                     call.targets, Upstream<T>(grad, o[4], call.reduction.mean),
                     data_of<const compute_type<T>>(lse), lse.ndim ? lse.strides[0] : (int64_t)0,
                     float_param(launch->params[2]), Gradients<T>(dx), sharing.group);
    });
}

YOKE_CUDA_END
