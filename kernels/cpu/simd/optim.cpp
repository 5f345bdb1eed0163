// One step of an optimizer over all tensors of a group in one pass, shared among the threads by elements.
#include "kernels/common/optim.h"

#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

// The tensors of one launch: params, grads, and momenta unless there is no momentum.
struct Group {
    const yoke_operand *params, *grads, *momenta;
    int64_t count = 0, numel = 0;

    // params are written and grads are not, which tells how many there are of each.
    explicit Group(const yoke_launch *launch) : params(launch->operands)
    {
        while (count < launch->operand_count && (params[count].flags & YOKE_OPERAND_WRITE)) {
            numel += params[count].numel;
            count++;
        }
        grads = params + count;
        momenta = launch->operand_count == 3 * count ? grads + count : nullptr;
    }
};

template <class T>
static void step_run(const kernels::Sgd<compute_type<T>> &sgd, char *const *data,
                     const int64_t *stride, int64_t n, bool has_momentum)
{
    T *p = (T *)data[0], *m = (T *)data[2];
    const T *g = (const T *)data[1];
    auto update = [&](T & parameter, T gradient, T & buffer) __attribute__((always_inline))
    {
        compute_type<T> kept = load<T>(buffer);
        parameter = store<T>(sgd(load<T>(parameter), load<T>(gradient), kept));
        buffer = store<T>(kept);
    };
    bool dense = stride[0] == sizeof(T) && stride[1] == sizeof(T) && stride[2] == sizeof(T);
    if (!has_momentum) {
        if (dense) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++) p[i] = store<T>(sgd(load<T>(p[i]), load<T>(g[i])));
            return;
        }
        for (int64_t i = 0; i < n; i++) {
            T *to = (T *)(data[0] + i * stride[0]);
            *to = store<T>(sgd(load<T>(*to), load<T>(*(const T *)(data[1] + i * stride[1]))));
        }
    } else if (dense) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) update(p[i], g[i], m[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            update(*(T *)(data[0] + i * stride[0]), *(const T *)(data[1] + i * stride[1]),
                   *(T *)(data[2] + i * stride[2]));
    }
}

template <class T>
static void step_tensor(const yoke_launch *launch, const Group &group, int64_t index, int64_t begin,
                        int64_t end)
{
    const yoke_arg *params = launch->params;
    using C = compute_type<T>;
    kernels::Sgd<C> sgd{(C)float_param(params[0]), (C)float_param(params[1]),
                        (C)float_param(params[2]), params[3].v.i != 0, params[4].v.i != 0};
    bool has_momentum = group.momenta && float_param(params[1]) != 0;
    const yoke_operand &p = group.params[index];
    const yoke_operand &m = has_momentum ? group.momenta[index] : p;
    Loop<3> loop;
    plan_loop<3>(loop, {&p, &group.grads[index], &m});
    walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        if (n == 1) {  // a tensor of one element has no strides
            const int64_t unit[3] = {sizeof(T), sizeof(T), sizeof(T)};
            return step_run<T>(sgd, data, unit, n, has_momentum);
        }
        step_run<T>(sgd, data, stride, n, has_momentum);
    });
}

static yoke_status check_group(const yoke_launch *launch, const Group &group)
{
    for (int64_t i = 0; i < group.count; i++) {
        yoke_dtype dtype = group.params[i].dtype;
        if (group.grads[i].dtype != dtype) return bad_dtype(launch, "grad", group.grads[i].dtype);
        if (group.momenta && group.momenta[i].dtype != dtype)
            return bad_dtype(launch, "momentum", group.momenta[i].dtype);
        auto accept = []<class T>() { return (yoke_status)YOKE_OK; };
        if (yoke_status status = for_float(launch, "param", dtype, accept)) return status;
    }
    return YOKE_OK;
}

YOKE_KERNEL(_sgd)
{
    Group group(launch);
    if (yoke_status status = check_group(launch, group)) return status;
    parallel_range(group.numel, kGrain, [&](int64_t begin, int64_t end) {
        int64_t first = 0;  // of this tensor, among all elements
        for (int64_t i = 0; i < group.count && first < end; i++) {
            int64_t n = group.params[i].numel, from = max(begin, first), to = min(end, first + n);
            if (from < to)
                for_float(launch, "param", group.params[i].dtype, [&]<class T>() {
                    step_tensor<T>(launch, group, i, from - first, to - first);
                    return (yoke_status)YOKE_OK;
                });
            first += n;
        }
    });
    return YOKE_OK;
}

YOKE_SIMD_END
