// The driver of reductions over any set of axes of a strided tensor.
//
// Contract
//  * reduce<In>(launch, axes, op) reduces elements of the format In by an Op of reduce_fold.cuh.
//  * Each byte of x is read once. Rows (elements of a result next to each other): a result by a few warp lanes, a warp
//    or a block, in packs. Columns (results next to each other): a block takes a tile of them, 8 or 16 bytes a thread
//    at a time. Where results are too few to keep the device busy, or long, each is cut into items, whose parts a
//    second kernel combines.
//  * Who takes which element follows from shapes, strides and addresses alone, and so do the bits. No thread adds
//    more than a few hundred numbers one after another; the rest is a tree.
#pragma once

#include "kernels/cuda/ops/reduce_columns.cuh"
#include "kernels/cuda/ops/reduce_rows.cuh"

YOKE_CUDA_BEGIN

// ---- parts of results ----------------------------------------------------------------------------------------------

template <class Op>
__global__ void combine_parts(Walk<kSides> kept, Op given, const typename Op::State *parts,
                              int64_t items, int group)
{
    const int in_group = (int)threadIdx.x % group, per_block = (int)blockDim.x / group;
    YOKE_NO_UNROLL
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < kept.numel;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t row = first + (int)threadIdx.x / group;
        const bool inside = row < kept.numel;
        const Place<kSides> place = kept.at(inside ? row : 0);
        const Op op = op_at(given, place);
        typename Op::State state = op.init();
        if (inside) {
            YOKE_UNROLL_BY(kStateCopies<typename Op::State>)
            for (int64_t i = in_group; i < items; i += group)
                state = op.combine(state, parts[row * items + i]);
        }
        state = join_group(op, state, group);
        if (inside && !in_group) op.put(place.data[kResult], state);
    }
}

// Returns the grid for `rows` groups. A group larger than a warp has a block.
inline Grid group_grid(const yoke_launch *launch, int64_t rows, int group, int threads)
{
    if (group > kWarp) return {min(rows, (int64_t)1 << 30), group};
    return {blocks_for(launch, rows, threads / group), threads};
}

template <class Op>
inline yoke_status start_combining(const yoke_launch *launch, const ReduceAxes &axes, const Op &op,
                                   const typename Op::State *parts, int64_t items)
{
    const int threads = block_size(kThreads);
    const int group = items > 8 * kWarp ? threads : (int)min(kWarp, power_of_two_from(items));
    return start(launch, combine_parts<Op>, group_grid(launch, axes.kept.numel, group, threads),
                 Walk<kSides>(axes.kept), op, parts, items, group);
}

// ---- the entry -----------------------------------------------------------------------------------------------------

// Starts `kernel` on a job. If the job has several items, also starts the kernel that combines them.
template <class Op, class Job>
inline yoke_status start_reducing(const yoke_launch *launch, const ReduceAxes &axes, const Op &op,
                                  const Job &job, const Grid &grid,
                                  void (*kernel)(Job, Op, typename Op::State *))
{
    using State = typename Op::State;
    if (job.items == 1) return start(launch, kernel, grid, job, op, (State *)nullptr);
    Scratch parts(launch);
    const uint64_t bytes = (uint64_t)(axes.kept.numel * job.items) * sizeof(State);
    if (yoke_status status = parts.reserve(bytes)) return status;
    if (yoke_status status = start(launch, kernel, grid, job, op, parts.as<State>())) return status;
    return start_combining(launch, axes, op, parts.as<State>(), job.items);
}

template <class In, class Op>
inline yoke_status reduce(const yoke_launch *launch, const ReduceAxes &axes, const Op &op)
{
    if (axes.kept.numel == 0) return YOKE_OK;
    const int threads = block_size(kThreads);
    const bool by_columns = axes.by_columns();
    const int width = by_columns ? column_width<In>(axes, threads) : 0;
    if (!by_columns || threads / width > axes.reduced.numel) {
        const RowJob job = plan_rows<In>(axes, threads, by_columns);
        const Grid grid = group_grid(launch, axes.kept.numel * job.items, job.group, threads);
        return start_reducing(launch, axes, op, job, grid, reduce_rows<In, Op>);
    }
    const ColumnJob job = plan_columns<In>(axes, threads, width);
    const int64_t blocks = job.tiles * job.items * job.planes.numel;
    const int64_t shared = width < threads ? threads * (int64_t)sizeof(typename Op::State) : 0;
    return start_reducing(launch, axes, op, job, {min(blocks, (int64_t)1 << 30), threads, shared},
                          reduce_columns<In, Op>);
}

// Reduces over the axes named by a parameter of the launch.
template <class In, class Op>
inline yoke_status reduce(const yoke_launch *launch, const Op &op, int axis = 0)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    bool is_reduced[YOKE_MAX_NDIM];
    kernels::mark_axes(launch->params[axis], x.ndim, is_reduced);
    if (out.numel == 0) return YOKE_OK;
    return reduce<In>(launch, ReduceAxes(x, out, is_reduced), op);
}

YOKE_CUDA_END
