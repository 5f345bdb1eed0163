// cat and one_hot: tensors put together from other tensors.
#include "kernels/common/cat.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/ops/copy_strided.cuh"
#include "kernels/cuda/ops/indices.cuh"

YOKE_CUDA_BEGIN

// ---- cat ------------------------------------------------------------------------------------------------------------

// Rows of several tensors, each row-major, into rows of the result: in units of U.
constexpr int kParts = 64;  // parts of a launch

struct Part {
    const void *data;
    int64_t length, place;  // units of a row, and where they begin in a row of the result
};
struct Parts {
    Part part[kParts];
    int64_t rows, length;  // sizes of the result
};

template <class U>
__global__ void copy_parts(U *out, Parts parts)
{
    const Part part = parts.part[blockIdx.y];
    const auto *from = (const U *)part.data;
    const int64_t units = parts.rows * part.length, step = (int64_t)gridDim.x * blockDim.x;
    const bool narrow = units < ((int64_t)1 << 31);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < units; i += step) {
        const int64_t row = narrow ? (uint32_t)i / (uint32_t)part.length : i / part.length;
        out[row * (parts.length - part.length) + part.place + i] = from[i];
    }
}

// Returns the bytes of the widest unit in which every row begins and ends.
static int64_t unit_of(const yoke_launch *launch, const Parts &parts, int count, int64_t size)
{
    const yoke_operand &out = launch->operands[launch->operand_count - 1];
    int64_t unit = 16;
    bool fits = false;
    for (; unit > size; unit /= 2) {
        fits = is_aligned(out.data, unit) && parts.length * size % unit == 0;
        for (int i = 0; i < count && fits; i++)
            fits = is_aligned(parts.part[i].data, unit) &&
                   parts.part[i].length * size % unit == 0 &&
                   parts.part[i].place * size % unit == 0;
        if (fits) break;
    }
    return unit;
}

template <class U>
static yoke_status start_parts(const yoke_launch *launch, Parts parts, int count, int64_t size)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        parts.part[i].length = parts.part[i].length * size / (int64_t)sizeof(U);
        parts.part[i].place = parts.part[i].place * size / (int64_t)sizeof(U);
        most = max(most, parts.part[i].length);
    }
    parts.length = parts.length * size / (int64_t)sizeof(U);
    const int threads = block_size(kThreads);
    const Grid grid{blocks_for(launch, parts.rows * most, 4 * threads), threads, 0, count};
    return start(launch, copy_parts<U>, grid,
                 data_of<U>(launch->operands[launch->operand_count - 1]), parts);
}

static yoke_status copy_rows(const yoke_launch *launch, const Parts &parts, int count)
{
    if (count == 0) return YOKE_OK;
    const int64_t size = dtype_size(launch->operands[0].dtype),
                  unit = unit_of(launch, parts, count, size);
    if (unit == 16) return start_parts<Pack<uint64_t, 2>>(launch, parts, count, size);
    return for_size(launch, "x", unit,
                    [&]<class U>() { return start_parts<U>(launch, parts, count, size); });
}

YOKE_KERNEL(cat)
{
    const int count = launch->operand_count - 1, axis = (int)launch->params[0].v.i;
    const yoke_operand &out = launch->operands[count];
    if (out.numel == 0) return YOKE_OK;
    bool plain = is_contiguous(out);
    for (int i = 0; i < count; i++) {
        const yoke_operand &x = launch->operands[i];
        plain &= x.numel == 0 || (is_contiguous(x) && x.dtype == out.dtype);
    }
    if (!plain)
        return kernels::copy_into_parts(launch,
                                        [&](const yoke_operand &part, const yoke_operand &x) {
                                            return copy_operand(launch, part, x);
                                        });
    Parts parts;
    parts.rows = 1;
    for (int i = 0; i < axis; i++) parts.rows *= out.shape[i];
    parts.length = out.numel / parts.rows;
    int filled = 0;
    int64_t place = 0;
    for (int i = 0; i < count; i++) {
        const yoke_operand &x = launch->operands[i];
        if (x.numel == 0) continue;
        parts.part[filled++] = {x.data, x.numel / parts.rows, place};
        place += x.numel / parts.rows;
        if (filled < kParts) continue;
        if (const yoke_status status = copy_rows(launch, parts, filled)) return status;
        filled = 0;
    }
    return copy_rows(launch, parts, filled);
}

// ---- the op one_hot -----------------------------------------------------------------------------------------------

// Writes 1 at the class of each element of x, over a result of zeros. Reports values that are no class.
__global__ void set_classes(int64_t *out, Walk<1> x, bool wide, int64_t classes, Reporter reporter)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < x.numel;
         i += (int64_t)gridDim.x * blockDim.x) {
        const char *from = x.at(i).data[0];
        const int64_t value = wide ? *(const int64_t *)from : *(const int32_t *)from;
        if (value >= 0 && value < classes)
            out[i * classes + value] = 1;
        else
            report(reporter, i, value, classes);
    }
}

YOKE_KERNEL(one_hot)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.dtype != YOKE_I64) return bad_dtype(launch, "out", out.dtype);
    if (x.dtype != YOKE_I64 && x.dtype != YOKE_I32) return bad_dtype(launch, "x", x.dtype);
    if (x.numel == 0) return YOKE_OK;
    const cudaError_t error = cudaMemsetAsync(out.data, 0, (size_t)out.numel * sizeof(int64_t),
                                              static_cast<cudaStream_t>(launch->stream));
    if (error != cudaSuccess)
        return call_failed(launch, error, "cudaMemsetAsync of %llu bytes",
                           (unsigned long long)(out.numel * sizeof(int64_t)));
    Loop<1> loop;
    kernels::plan_ordered<1>(loop, {&x}, 0, x.ndim);
    const int threads = block_size(kThreads);
    return start(
        launch, set_classes, {blocks_for(launch, x.numel, threads), threads}, data_of<int64_t>(out),
        Walk<1>(loop), x.dtype == YOKE_I64, out.shape[out.ndim - 1],
        reporter(launch, "%s: element %lld of x is %lld; with %lld classes use 0 to %lld"));
}

YOKE_CUDA_END
