// gather, scatter and scatter_add: elements by an index along one axis; the other coordinates stay the same.
//
// If the index is the same along all other axes, such as an expanded index, scatter_add adds whole rows.
#include "kernels/cuda/ops/copy_strided.cuh"
#include "kernels/cuda/ops/segment_sum.cuh"

YOKE_CUDA_BEGIN

// Returns the places of an index along an axis of this length, in reading order of its elements.
static Places places_of(const yoke_launch *launch, const yoke_operand &index, int64_t length)
{
    const Wording &wording = kIndexWording;
    return {data_of<char>(index),
            0,
            index.numel,
            index.dtype == YOKE_I64,
            false,
            false,
            length,
            1,
            reporter(launch, length == 0 ? wording.empty : wording.outside, index)};
}

// Copies the element of x that each index names; writes 0 for an index out of range. Operands: out, index, x. Along
// the axis, x does not move with the element.
template <class U>
__global__ void gather_elements(Walk<3> walk, Places places, int64_t step)
{
    walk_elements(walk, [&](int64_t, const Place<3> &place) {
        const int64_t entry = (place.data[0] - walk.data[0]) / (int64_t)sizeof(U);
        const int64_t at = places.at(place.data[1], entry);
        *(U *)place.data[0] = at < 0 ? U(0) : *(const U *)(place.data[2] + at * step);
    });
}

YOKE_KERNEL(gather)
{
    const yoke_operand &x = launch->operands[0], &index = launch->operands[1],
                       &out = launch->operands[2];
    const int axis = (int)launch->params[0].v.i;
    if (const yoke_status status = check_index_dtype(launch, index)) return status;
    if (out.numel == 0) return YOKE_OK;
    Loop<3> loop;
    kernels::plan_elements<3>(loop, {&out, &index, &x}, index, axis, 2);
    const Walk<3> walk(loop);
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class U>() {
        return start(launch, gather_elements<U>, walk_grid(launch, walk), walk,
                     places_of(launch, index, axis_length(x, axis)), axis_step(x, axis));
    });
}

// ---- scatter_add and scatter ----------------------------------------------------------------------------------------

// Lists elements by the number of the element of x that each goes to. Operands of the walk: the index, and the
// numbers of x's elements, as steps from the index's own beginning; along the axis they are `step` apart.
__global__ void list_elements(Keys keys, Walk<2> walk, Places places, int64_t step)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < places.count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const Place<2> place = walk.at(i);
        const int64_t at = places.at(place.data[0], i);
        keys.list(i, at < 0 ? -1 : place.data[1] - walk.data[1] + at * step);
    }
}

// Fills `keys` with the number of the element of `out` that each index names.
static yoke_status number_elements(const yoke_launch *launch, const yoke_operand &index,
                                   const yoke_operand &out, int axis, const Keys &keys)
{
    Loop<2> loop;
    loop.ndim = 0;
    loop.numel = 1;
    loop.data[0] = loop.data[1] = data_of<char>(index);
    int64_t numbers = 1, step = 1;
    for (int i = index.ndim - 1; i >= 0; i--) {
        if (i == axis) step = numbers;
        add_axis<2>(loop, index.shape[i], {axis_step(index, i), i == axis ? 0 : numbers});
        numbers *= out.shape[i];
    }
    if (loop.ndim == 0) finish_loop<2>(loop);
    kernels::join_axes<2>(loop);
    const int threads = block_size(kThreads);
    return start(launch, list_elements, {blocks_for(launch, index.numel, threads), threads}, keys,
                 Walk<2>(loop), places_of(launch, index, axis_length(out, axis)), step);
}

// Plans a loop over the elements of src in the order of an index, which may be shorter along each axis.
static void plan_entries(Loop<1> &own, const yoke_operand &index, const yoke_operand &src)
{
    yoke_operand part = src;
    part.shape = index.shape;
    kernels::plan_ordered<1>(own, {&part}, 0, part.ndim);
}

static yoke_status add_elements(const yoke_launch *launch, const yoke_operand &index,
                                const yoke_operand &src, const yoke_operand &out, int axis)
{
    EntryList entries(launch);
    if (const yoke_status status = entries.reserve(index.numel, out.numel)) return status;
    if (const yoke_status status = number_elements(launch, index, out, axis, entries.keys()))
        return status;
    if (const yoke_status status = entries.sort()) return status;
    Addition addition;
    kernels::plan_ordered<2>(addition.columns, {&out, &src}, 0, 0);
    kernels::plan_ordered<1>(addition.middle, {&out}, 0, out.ndim);
    plan_entries(addition.own, index, src);
    addition.adds = true;
    return sum_entries(launch, entries, addition, out.dtype);
}

// Returns whether the index is the same along all axes except `axis`.
static bool is_same_across(const yoke_operand &index, int axis)
{
    for (int i = 0; i < index.ndim; i++)
        if (i != axis && index.shape[i] != 1 && index.strides[i] != 0) return false;
    return true;
}

static yoke_status add_rows(const yoke_launch *launch, const yoke_operand &index,
                            const yoke_operand &src, const yoke_operand &out, int axis)
{
    Places places = places_of(launch, index, axis_length(out, axis));
    places.step = axis_step(index, axis);
    places.count = axis_length(index, axis);
    Addition addition;
    kernels::plan_lines<2>(addition.columns, {&out, &src}, index, axis);
    for (int i = axis + 1; i < index.ndim; i++) places.spread *= index.shape[i];
    kernels::plan_ordered<1>(addition.middle, {&out}, axis, min(out.ndim, axis + 1));
    kernels::plan_ordered<1>(addition.own, {&src}, axis, min(src.ndim, axis + 1));
    addition.adds = true;
    EntryList entries(launch);
    if (const yoke_status status = entries.list(places, places.length, -1)) return status;
    return sum_entries(launch, entries, addition, out.dtype);
}

// Copies x into the result, unless the result is x. Sets `is_done` if no index writes.
static yoke_status begin_scatter(const yoke_launch *launch, bool &is_done)
{
    const yoke_operand &x = launch->operands[0], &index = launch->operands[1],
                       &out = launch->operands[3];
    if (const yoke_status status = check_index_dtype(launch, index)) return status;
    is_done = index.numel == 0 || out.numel == 0;
    return out.data == x.data ? (yoke_status)YOKE_OK : copy_operand(launch, out, x);
}

YOKE_KERNEL(scatter_add)
{
    const yoke_operand &index = launch->operands[1], &src = launch->operands[2],
                       &out = launch->operands[3];
    const int axis = (int)launch->params[0].v.i;
    bool is_done = false;
    if (const yoke_status status = begin_scatter(launch, is_done)) return status;
    if (is_done) return YOKE_OK;
    return is_same_across(index, axis) ? add_rows(launch, index, src, out, axis)
                                       : add_elements(launch, index, src, out, axis);
}

YOKE_KERNEL(_scatter)
{
    const yoke_operand &index = launch->operands[1], &src = launch->operands[2],
                       &out = launch->operands[3];
    const int axis = (int)launch->params[0].v.i;
    bool is_done = false;
    if (const yoke_status status = begin_scatter(launch, is_done)) return status;
    if (is_done) return YOKE_OK;
    Scratch scratch(launch);
    const int64_t count = index.numel,
                  bytes = count * (int64_t)(sizeof(int64_t) + sizeof(uint32_t));
    if (const yoke_status status = scratch.reserve((uint64_t)bytes)) return status;
    auto *found = scratch.as<int64_t>();
    // An index out of range gets the place -1.
    const Keys keys{found, reinterpret_cast<uint32_t *>(found + count), count, ~(uint64_t)0, true};
    if (const yoke_status status = number_elements(launch, index, out, axis, keys)) return status;
    Places places = places_of(launch, index, axis_length(out, axis));
    places.data = scratch.as<char>();
    places.step = sizeof(int64_t);
    places.wide = places.found = true;
    Blocks blocks;
    kernels::plan_ordered<2>(blocks.before, {&out, &src}, 0, 0);
    blocks.behind = blocks.before;
    kernels::plan_ordered<1>(blocks.middle, {&out}, 0, out.ndim);
    plan_entries(blocks.own, index, src);
    return write_blocks(launch, blocks, places, dtype_size(out.dtype));
}

YOKE_CUDA_END
