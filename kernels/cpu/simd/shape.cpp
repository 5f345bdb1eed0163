// cat and one_hot: tensors put together from other tensors.
#include "kernels/common/cat.h"
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

YOKE_KERNEL(cat)
{
    return kernels::copy_into_parts(launch, [&](const yoke_operand &part, const yoke_operand &x) {
        return copy_operand(launch, part, x);
    });
}

// Calls f(index, data of x, data of out) for every element of x in row-major order, until f returns false.
template <class F>
static void visit(const yoke_operand &x, const yoke_operand &out, const F &f)
{
    Loop<2> loop;
    kernels::begin_loop<2>(loop, {&x, &out});
    for (int axis = x.ndim - 1; axis >= 0; axis--)
        add_axis<2>(
            loop, x.shape[axis],
            {x.strides[axis] * dtype_size(x.dtype), out.strides[axis] * dtype_size(out.dtype)});
    if (loop.ndim == 0) finish_loop<2>(loop);
    if (x.numel == 0) return;
    Cursor<2> cursor(loop, 0);
    for (int64_t i = 0; i < x.numel; i++, cursor.advance(loop, 0, 1))
        if (!f(i, cursor.data[0], cursor.data[1])) return;
}

template <class T>
static yoke_status check_classes(const yoke_operand &x, const yoke_operand &out, int64_t classes)
{
    yoke_status status = YOKE_OK;
    visit(x, out, [&](int64_t i, const char *from, char *) {
        int64_t index = (int64_t) * (const T *)from;
        if (index >= 0 && index < classes) return true;
        status = fail(YOKE_E_INDEX,
                      "one_hot: element %lld of x is %lld; with %lld classes use 0 to %lld",
                      (long long)i, (long long)index, (long long)classes, (long long)classes - 1);
        return false;
    });
    return status;
}

template <class T>
static void set_classes(const yoke_launch *launch, const yoke_operand &x, const yoke_operand &out)
{
    int64_t stride = out.strides[out.ndim - 1];
    for_any(launch, "out", out.dtype, [&]<class Out>() {
        visit(x, out, [&](int64_t, const char *from, char *to) {
            ((Out *)to)[(int64_t) * (const T *)from * stride] = convert<Out>((int64_t)1);
            return true;
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_DISPATCHER(for_index, YOKE_INTEGER_TYPES)

YOKE_KERNEL(one_hot)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    return for_index(launch, "x", x.dtype, [&]<class T>() {
        int64_t classes = out.shape[out.ndim - 1];
        if (yoke_status status = check_classes<T>(x, out, classes)) return status;
        const uint64_t zero = 0;
        const yoke_operand zeros = kernels::single_value(out.dtype, &zero);
        if (yoke_status status = copy_operand(launch, out, zeros)) return status;
        set_classes<T>(launch, x, out);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
