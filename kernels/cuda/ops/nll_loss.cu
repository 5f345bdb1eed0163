// The negative log likelihood of log-probabilities and class indices, and its gradient.
#include "kernels/cuda/ops/loss_sum.cuh"

YOKE_CUDA_BEGIN

template <class T>
__global__ void pick_losses(ClassRows<T> x, Targets targets, LossPlace<T> to)
{
    using C = compute_type<T>;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < targets.count;
         row += (int64_t)gridDim.x * blockDim.x) {
        const int64_t index = targets.class_of(row, true);
        to.put(row, index < 0 ? (C)0 : -x.at(row, index));
    }
}

template <class T>
static yoke_status likelihood_loss(const yoke_launch *launch, const Call &call)
{
    const yoke_operand *o = launch->operands;
    const int threads = block_size(kThreads);
    RowLosses<T> losses(launch, call);
    if (const yoke_status status = losses.reserve()) return status;
    if (const yoke_status status = start(launch, pick_losses<T>,
                                         {blocks_for(launch, call.targets.count, threads), threads},
                                         ClassRows<T>(o[0]), call.targets, losses.place(o[2])))
        return status;
    return losses.add(o[2], o[3]);
}

YOKE_KERNEL(_nll_loss)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    if (const yoke_status status = check_target(launch, target)) return status;
    const Call call(launch, x, target, YOKE_OP_NLL_LOSS);
    return for_float(launch, "x", x.dtype,
                     [&]<class T>() { return likelihood_loss<T>(launch, call); });
}

// Writes the gradients of rows: -g at the target, 0 elsewhere.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    spread_gradients(Targets targets, Upstream<T> upstream, ClassRows<T> dx, int group)
{
    using C = compute_type<T>;
    constexpr int V = kPackLength<T>;
    const Member member(group);
    for (int64_t row = blockIdx.x * member.groups() + member.number(); row < targets.count;
         row += gridDim.x * member.groups()) {
        const int64_t index = targets.class_of(row, member.in_group == 0);
        const C slope = index < 0 ? (C)0 : -upstream.at(row);
        const int skew = dx.skew(row);
        const ClassRow<T> to(dx, row, skew);
        for (int64_t i = member.in_group * V - skew; i < dx.count; i += (int64_t)group * V) {
            C y[V];
            YOKE_UNROLL
            for (int k = 0; k < V; k++) y[k] = i + k == index ? slope : (C)0;
            to.put(i, y);
        }
    }
}

YOKE_KERNEL(_nll_loss_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[1], &target = o[2], &dx = o[4];
    if (const yoke_status status = check_target(launch, target)) return status;
    const Call call(launch, x, target, YOKE_OP_NLL_LOSS);
    if (dx.numel == 0) return YOKE_OK;
    return for_float(launch, "x", dx.dtype, [&]<class T>() {
        const Sharing sharing = share_classes(x.shape[1], kPackLength<T>);
        return start(launch, spread_gradients<T>, row_grid(launch, x.shape[0], sharing),
                     call.targets, Upstream<T>(o[0], o[3], call.reduction.mean), ClassRows<T>(dx),
                     sharing.group);
    });
}

YOKE_CUDA_END
