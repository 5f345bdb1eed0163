// argmax, and the gradient of amax: where the largest elements are.
#include "kernels/cpu/simd/reduce.h"

YOKE_SIMD_BEGIN

// ---- argmax -----------------------------------------------------------------------------------------------------

// Of a run without gaps: items by the team, then the first of the largest.
template <class T>
static yoke_status argmax_flat(const yoke_launch *launch, const T *x, int64_t n, int64_t *out)
{
    kernels::Argmax<T> op;
    int64_t items = divide_up(n, kItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)items * sizeof(int64_t))) return status;
    int64_t *best = static_cast<int64_t *>(scratch.data());
    parallel_items(items, [&](int64_t item) {
        int64_t begin = item * kItem;
        best[item] = begin + kernels::argmax_span(x + begin, 1, min(kItem, n - begin));
    });
    auto state = op.init();
    for (int64_t item = 0; item < items; item++)
        state = op.reduce(state, load<T>(x[best[item]]), best[item]);
    *out = op.project(state, n);
    return YOKE_OK;
}

template <class T>
static yoke_status argmax_of_all(const yoke_launch *launch, const yoke_operand &x, int64_t *out)
{
    if (is_contiguous(x)) return argmax_flat(launch, data_of<T>(x), x.numel, out);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)x.numel * sizeof(T))) return status;
    int64_t strides[YOKE_MAX_NDIM], size = 1;
    for (int axis = x.ndim - 1; axis >= 0; axis--) {
        strides[axis] = size;
        size *= x.shape[axis];
    }
    yoke_operand row_major = x;
    row_major.data = scratch.data();
    row_major.strides = strides;
    row_major.flags |= YOKE_OPERAND_CONTIGUOUS;
    if (yoke_status status = copy_operand(launch, row_major, x)) return status;
    return argmax_flat(launch, data_of<T>(row_major), x.numel, out);
}

YOKE_KERNEL(argmax)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const yoke_arg &axis = launch->params[0];
    if (out.numel == 0) return YOKE_OK;
    if (x.numel == 0) return fail(YOKE_E_VALUE, "argmax: x has no elements to take the largest of");
    bool is_reduced[YOKE_MAX_NDIM];
    mark_axes(axis, x.ndim, is_reduced);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        if (axis.kind == YOKE_ARG_NONE || x.ndim <= 1)
            return argmax_of_all<T>(launch, x, data_of<int64_t>(out));
        Axes axes(x, out, is_reduced);
        int64_t n = axes.reduced.numel, stride = axes.reduced.stride[0][0] / (int64_t)sizeof(T);
        parallel_range(axes.kept.numel, max(1, kGrain / n), [&](int64_t begin, int64_t end) {
            Cursor<2> cursor(axes.kept, begin);
            for (; begin < end; begin++, cursor.advance(axes.kept, 0, 1))
                *(int64_t *)cursor.data[0] =
                    kernels::argmax_span((const T *)cursor.data[1], stride, n);
        });
        return (yoke_status)YOKE_OK;
    });
}

// ---- the gradient of amax ---------------------------------------------------------------------------------------

template <class C>
static bool is_same(C a, C b)
{
    return (a == b) | ((a != a) & (b != b));
}

// One result's elements: counted, then given g / count where they equal the maximum.
template <class T>
static void share_gradient(const Loop<2> &reduced, T g, T maximum)
{
    int64_t count = 0;
    compute_type<T> top = load<T>(maximum);
    walk<2>(reduced, 0, reduced.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t i = 0; i < n; i++)
            count += is_same(load<T>(*(const T *)(data[1] + i * stride[1])), top);
    });
    T share = store<T>((compute_type<T>)(load<T>(g) / (compute_type<T>)max(1, count)));
    walk<2>(reduced, 0, reduced.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
        for (int64_t i = 0; i < n; i++) {
            bool chosen = is_same(load<T>(*(const T *)(data[1] + i * stride[1])), top);
            *(T *)(data[0] + i * stride[0]) = chosen ? share : store<T>(0);
        }
    });
}

// grad and out have x's axes, of which the reduced ones are of length 1.
YOKE_KERNEL(_amax_backward)
{
    const yoke_operand &grad = launch->operands[0], &x = launch->operands[1];
    const yoke_operand &top = launch->operands[2], &out = launch->operands[3];
    if (x.numel == 0) return YOKE_OK;
    Loop<4> kept = {};     // out, x, grad, top
    Loop<2> reduced = {};  // out, x
    kept.numel = reduced.numel = 1;
    for (int axis = x.ndim - 1; axis >= 0; axis--) {
        int64_t steps[4] = {step_of(out, axis, x.ndim), step_of(x, axis, x.ndim),
                            step_of(grad, axis, x.ndim), step_of(top, axis, x.ndim)};
        int own = axis - (x.ndim - top.ndim);
        if (own >= 0 && top.shape[own] == x.shape[axis])
            add_axis<4>(kept, x.shape[axis], steps);
        else
            add_axis<2>(reduced, x.shape[axis], {steps[0], steps[1]});
    }
    const yoke_operand *operands[4] = {&out, &x, &grad, &top};
    for (int i = 0; i < 4; i++) kept.data[i] = data_of<char>(*operands[i]);
    finish_loop<4>(kept);
    finish_loop<2>(reduced);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        parallel_range(kept.numel, max(1, kGrain / reduced.numel), [&](int64_t begin, int64_t end) {
            for (; begin < end; begin++) {
                Cursor<4> cursor(kept, begin);
                Loop<2> row = reduced;
                row.data[0] = cursor.data[0];
                row.data[1] = cursor.data[1];
                share_gradient<T>(row, *(const T *)cursor.data[2], *(const T *)cursor.data[3]);
            }
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
