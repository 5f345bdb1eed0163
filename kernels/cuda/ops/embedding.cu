// embedding and its gradient: rows of a table by index, and sums of gradient rows by the same index.
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/ops/segment_sum.cuh"

YOKE_CUDA_BEGIN

static constexpr Wording kRowWording = {
    "%1$.0sembedding: index%2$s is %3$lld; weight has %4$lld rows: use 0 to %5$lld",
    "%1$.0sembedding: index%2$s is %3$lld, but weight has no rows"};

// Returns a loop of a single axis.
template <int N>
static Loop<N> line(int64_t length, const int64_t (&steps)[N], char *const (&data)[N])
{
    Loop<N> loop;
    loop.ndim = 0;
    loop.numel = 1;
    for (int i = 0; i < N; i++) loop.data[i] = data[i];
    add_axis<N>(loop, length, steps);
    finish_loop<N>(loop);
    return loop;
}

YOKE_KERNEL(embedding)
{
    const yoke_operand &index = launch->operands[0], &weight = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const int64_t width = weight.shape[1], size = dtype_size(weight.dtype);
    PlaceList list(launch);
    if (const yoke_status status = list.find(&index, 1, weight.shape, kRowWording, false))
        return status;
    char *to = data_of<char>(out), *from = data_of<char>(weight);
    const Blocks blocks = {line<2>(1, {0, 0}, {to, from}),
                           line<2>(width, {size, axis_step(weight, 1)}, {to, from}),
                           line<1>(weight.shape[0], {axis_step(weight, 0)}, {from}),
                           line<1>(index.numel, {width * size}, {to})};
    return move_blocks(launch, blocks, list.places(), size, true);
}

YOKE_KERNEL(_embedding_backward)
{
    const yoke_operand &grad = launch->operands[0], &index = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const int64_t width = out.shape[1], size = dtype_size(out.dtype);
    const int64_t padding = launch->params[1].kind == YOKE_ARG_NONE ? -1 : launch->params[1].v.i;
    if (out.numel == 0) return YOKE_OK;
    const cudaError_t error = cudaMemsetAsync(out.data, 0, (size_t)(out.numel * size),
                                              static_cast<cudaStream_t>(launch->stream));
    if (error != cudaSuccess)
        return call_failed(launch, error, "cudaMemsetAsync of %llu bytes",
                           (unsigned long long)(out.numel * size));
    if (index.numel == 0) return YOKE_OK;
    PlaceList list(launch);
    if (const yoke_status status = list.find(&index, 1, out.shape, kRowWording, false))
        return status;
    EntryList entries(launch);
    if (const yoke_status status = entries.list(list.places(), out.shape[0], padding))
        return status;
    char *to = data_of<char>(out), *from = data_of<char>(grad);
    Addition addition = {line<2>(width, {size, axis_step(grad, grad.ndim - 1)}, {to, from}),
                         {},
                         line<1>(out.shape[0], {width * size}, {to}),
                         false};
    kernels::plan_ordered<1>(addition.own, {&grad}, 0, grad.ndim - 1);
    return sum_entries(launch, entries, addition, out.dtype);
}

YOKE_CUDA_END
