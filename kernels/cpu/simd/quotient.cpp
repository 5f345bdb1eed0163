// Whole quotients and remainders, over any strides.
#include "kernels/common/named.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/pointwise.h"

YOKE_SIMD_BEGIN

// Runs whole groups by F::quick. A group with a wrong result is computed again, by F itself, before the
// group is written.
template <class F, class L>
void run_checked(const void *, char *const *data, int64_t groups, bool)
{
    constexpr int64_t kGroup = (int64_t)1 << group_bits<L>();
    L *out = (L *)data[0];
    const L *a = (const L *)data[1], *b = (const L *)data[2];
    for (; groups > 0; groups--, out += kGroup, a += kGroup, b += kGroup) {
        float y[kGroup], wrong = 0;
#pragma omp simd reduction(+ : wrong)
        for (int64_t i = 0; i < kGroup; i++) {
            const kernels::QuickResult r = F::quick(load<L>(a[i]), load<L>(b[i]));
            y[i] = r.value;
            wrong += r.wrong;
        }
        if (wrong != 0)
            for (int64_t i = 0; i < kGroup; i++) y[i] = F()(load<L>(a[i]), load<L>(b[i]));
#pragma omp simd
        for (int64_t i = 0; i < kGroup; i++) out[i] = store<L>(y[i]);
    }
}

template <class F, class L>
constexpr MapTypes kCheckedTypes = {
    run_checked<F, L>, 3, group_bits<L>(), {sizeof(L), sizeof(L), sizeof(L)}};

template <class F>
concept HasQuick = requires
{
    F::quick(1.0f, 1.0f);
};

template <class T>
static bool has_zero(const yoke_operand &y)
{
    Loop<1> loop;
    plan_loop<1>(loop, {&y});
    int found = 0;
    walk<1>(loop, 0, loop.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
        if (stride[0] == (int64_t)sizeof(T)) {
            const T *values = (const T *)data[0];
            for (int64_t i = 0; i < n; i++) found |= values[i] == 0;
        } else {
            for (int64_t i = 0; i < n; i++) found |= *(const T *)(data[0] + i * stride[0]) == 0;
        }
    });
    return found != 0;
}

template <class F>
static yoke_status divide(const yoke_launch *launch, const char *call)
{
    const yoke_operand *x = launch->operands;
    return for_number(launch, "x", x[0].dtype, [&]<class T>() {
        if constexpr (!is_float<T>) {
            if (has_zero<T>(x[1]))
                return fail(
                    YOKE_E_VALUE,
                    "%s: a divisor is 0, and integers have no infinity or NaN; cast x to a floating dtype",
                    call);
            return binary<T, F>(launch, kCostlyGrain);
        } else if constexpr (HasQuick<F> && !std::is_same_v<T, double>) {
            using L = loop_type<T>;
            const F f{};
            const yoke_operand *const operands[] = {&x[2], &x[0], &x[1]};
            return map_operands({kCheckedTypes<F, L>, &f}, operands, kCostlyGrain);
        } else {
            return binary<T, F>(launch, kCostlyGrain);
        }
    });
}

YOKE_KERNEL(fmod)
{
    return divide<kernels::Fmod>(launch, "fmod");
}

YOKE_KERNEL(remainder)
{
    return divide<kernels::Remainder>(launch, "remainder");
}

YOKE_KERNEL(floor_divide)
{
    return divide<kernels::FloorDivide>(launch, "floor_divide");
}

YOKE_KERNEL(_div_rounded)
{
    return kernels::is_text(launch->params[0], "floor")
               ? divide<kernels::FloorDivide>(launch, "div")
               : divide<kernels::TruncDivide>(launch, "div");
}

YOKE_SIMD_END
