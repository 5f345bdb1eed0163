// index_select and its gradient: the parts of a tensor that an index names along one axis.
#include <cstring>

#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

struct Index {
    const yoke_operand &operand;
    int64_t count;   // how many positions
    int64_t length;  // of the axis that they name

    int64_t at(int64_t i) const
    {
        int64_t place = i * operand.strides[0];
        return operand.dtype == YOKE_I64 ? data_of<int64_t>(operand)[place]
                                         : data_of<int32_t>(operand)[place];
    }

    // Refuses what is out of range before anything is read or written.
    yoke_status check(const yoke_launch *launch) const
    {
        if (operand.dtype != YOKE_I64 && operand.dtype != YOKE_I32)
            return bad_dtype(launch, "index", operand.dtype);
        for (int64_t i = 0; i < count; i++) {
            int64_t position = at(i);
            if (position >= 0 && position < length) continue;
            if (length == 0)
                return fail(YOKE_E_INDEX,
                            "index_select: index[%lld] is %lld, but the axis is empty",
                            (long long)i, (long long)position);
            return fail(YOKE_E_INDEX,
                        "index_select: index[%lld] is %lld; along an axis of length %lld use 0 to "
                        "%lld",
                        (long long)i, (long long)position, (long long)length,
                        (long long)length - 1);
        }
        return YOKE_OK;
    }
};

// One part of two tensors, position 0 of each along `axis`: a loop over all the other axes.
static Loop<2> one_part(const yoke_operand &to, const yoke_operand &from, int axis)
{
    Loop<2> loop;
    loop.ndim = 0;
    loop.numel = 1;
    loop.data[0] = data_of<char>(to);
    loop.data[1] = data_of<char>(from);
    for (int i = to.ndim - 1; i >= 0; i--)
        if (i != axis)
            add_axis<2>(
                loop, to.shape[i],
                {to.strides[i] * dtype_size(to.dtype), from.strides[i] * dtype_size(from.dtype)});
    finish_loop<2>(loop);
    return loop;
}

static int64_t axis_step(const yoke_operand &operand, int axis)
{
    return operand.strides[axis] * dtype_size(operand.dtype);
}

template <class T>
static void select_parts(const Index &index, const yoke_operand &out, const yoke_operand &x,
                         int axis)
{
    const Loop<2> first = one_part(out, x, axis);
    int64_t to_step = axis_step(out, axis), from_step = axis_step(x, axis);
    int64_t grain = max(1, kGrain / max(1, first.numel));
    parallel_range(index.count, grain, [&](int64_t begin, int64_t end) {
        Loop<2> part = first;
        for (int64_t i = begin; i < end; i++) {
            part.data[0] = first.data[0] + i * to_step;
            part.data[1] = first.data[1] + index.at(i) * from_step;
            walk<2>(part, 0, part.numel, [](char *const *data, const int64_t *stride, int64_t n) {
                if (stride[0] == sizeof(T) && stride[1] == sizeof(T))
                    memcpy(data[0], data[1], (size_t)n * sizeof(T));
                else
                    map_run<T, T>([](T value) { return value; }, data, stride, n);
            });
        }
    });
}

YOKE_KERNEL(index_select)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[2];
    int axis = (int)launch->params[0].v.i;
    const Index index{launch->operands[1], out.shape[axis], x.shape[axis]};
    if (yoke_status status = index.check(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        select_parts<T>(index, out, x, axis);
        return (yoke_status)YOKE_OK;
    });
}

// Parts are added in the order of the index, each by the whole team, so that a part named twice gives the same bits
// each time.
template <class T>
static void add_parts(const Index &index, const yoke_operand &sum, const yoke_operand &grad,
                      int axis)
{
    using C = compute_type<T>;
    const Loop<2> first = one_part(sum, grad, axis);
    int64_t to_step = axis_step(sum, axis), from_step = axis_step(grad, axis);
    Loop<2> part = first;
    for (int64_t i = 0; i < index.count; i++) {
        part.data[0] = first.data[0] + index.at(i) * to_step;
        part.data[1] = first.data[1] + i * from_step;
        parallel_range(part.numel, kGrain, [&](int64_t begin, int64_t end) {
            walk<2>(part, begin, end, [](char *const *data, const int64_t *stride, int64_t n) {
                for (int64_t k = 0; k < n; k++)
                    *(C *)(data[0] + k * stride[0]) +=
                        load<T>(*(const T *)(data[1] + k * stride[1]));
            });
        });
    }
}

// Halves are added up in float32, in scratch, and rounded once.
YOKE_KERNEL(_index_select_backward)
{
    const yoke_operand &grad = launch->operands[0], &out = launch->operands[2];
    int axis = (int)launch->params[1].v.i;
    const Index index{launch->operands[1], grad.shape[axis], out.shape[axis]};
    if (yoke_status status = index.check(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    return for_float(launch, "grad", grad.dtype, [&]<class T>() {
        yoke_operand sum = out;
        Scratch scratch(launch);
        uint64_t bytes = (uint64_t)out.numel * sizeof(compute_type<T>);
        if (is_half<T>) {
            if (yoke_status status = scratch.reserve(bytes)) return status;
            sum.data = scratch.data();
            sum.dtype = YOKE_F32;
        }
        memset(sum.data, 0, bytes);
        add_parts<T>(index, sum, grad, axis);
        return is_half<T> ? copy_operand(launch, out, sum) : (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
