#include "kernels/cuda/ops/attention_masks.cuh"

#include "kernels/cuda/ops/attention_work.cuh"

YOKE_CUDA_BEGIN

__global__ void __launch_bounds__(kThreads) write_bias_elements(Walk<2> walk, uint16_t forbidden)
{
    walk_elements(walk, [&](int64_t, const Place<2> &place) {
        *(uint16_t *)place.data[0] = load(*(const bool8 *)place.data[1]) ? (uint16_t)0 : forbidden;
    });
}

yoke_status write_bias(const yoke_launch *launch, const yoke_operand &dst, const yoke_operand &src)
{
    constexpr uint16_t kF16 = 0xfc00, kBf16 = 0xff80;  // -infinity
    Loop<2> loop;
    plan_loop<2>(loop, {&dst, &src});
    const Walk<2> walk(loop);
    return start(launch, write_bias_elements, walk_grid(launch, walk), walk,
                 dst.dtype == YOKE_F16 ? kF16 : kBf16);
}

// A warp has a row.
__global__ void __launch_bounds__(kThreads) settle_each_row(const ForwardLaunch<Floats> launch)
{
    const AttentionSizes &s = launch.sizes;
    const int64_t warps = (int64_t)gridDim.x * (blockDim.x / kWarp);
    for (int64_t i = blockIdx.x * (int64_t)(blockDim.x / kWarp) + warp_of_thread();
         i < s.heads * s.queries; i += warps) {
        if (!kernels::is_stray(launch.lse[i])) continue;
        const AttentionHead<Floats, kForwardOperands, ForwardLaunch<Floats>> head(launch,
                                                                                  i / s.queries);
        const HeadMask<Floats> mask{head.place.data[kMask], launch.bool_mask, launch.mask};
        const int64_t row = i % s.queries;
        bool allows = false;
        for (int64_t key = place_in_warp(); key < s.keys; key += kWarp)
            allows |= mask.at(row, key) != -kernels::kInfinity;
        if (__any_sync(kWholeWarp, allows)) continue;
        char *out = head.place.data[kAttended] + row * launch.out.row_step * launch.out.size;
        for (int64_t column = place_in_warp(); column < s.value_width; column += kWarp)
            *(uint16_t *)(out + column * launch.out.column_step * launch.out.size) = 0;
        if (place_in_warp() == 0) launch.lse[i] = kernels::kInfinity;
    }
}

yoke_status settle_rows(const yoke_launch *launch)
{
    using Work = AttentionWork<Floats, kForwardOperands>;
    const yoke_operand *o = launch->operands;
    const yoke_operand *const operands[] = {&o[kQuery], &o[kKey], &o[kValue], &o[kMask],
                                            &o[kAttended]};
    const Loop<kForwardOperands> heads = Work::plan(operands);
    const ForwardLaunch<Floats> work{Work(launch, operands, heads),
                                     Work::rows(operands, heads, kAttended),
                                     data_of<float>(o[kAttended + 1])};
    const int threads = block_size(kThreads);
    return start(
        launch, settle_each_row,
        {blocks_for(launch, work.sizes.heads * work.sizes.queries, threads / kWarp), threads},
        work);
}

YOKE_CUDA_END
