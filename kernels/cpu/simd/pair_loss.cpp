// Losses of two broadcast tensors: element by element, or summed in the computing type as they are made, so that a half
// neither overflows nor rounds on the way.
#include "kernels/common/pair_loss.h"

#include <cstring>

#include "kernels/common/norm.h"
#include "kernels/common/reduce.h"
#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/iterate.h"
#include "kernels/cpu/simd/map.h"
#include "kernels/cpu/simd/run.h"

YOKE_SIMD_BEGIN

constexpr int64_t kLossItem = 65536;  // elements added by a single thread
constexpr int64_t kLossChunk = 1024;  // elements made at a time
constexpr int64_t kLossGrain = kGrain / 2;

// Calls f with the functor of the loss `name`. Returns YOKE_E_INTERNAL if there is no such loss.
template <class F>
static yoke_status for_kind(const yoke_launch *launch, const char *name, double beta, const F &f)
{
    switch (kernels::pair_loss_named(name)) {
        YOKE_PAIR_LOSSES(YOKE_PAIR_LOSS_CASE)
        default:
            return fail(YOKE_E_INTERNAL, "%s: there is no loss \"%s\"", op_name(launch->op), name);
    }
}

// ---- values -----------------------------------------------------------------------------------------------------

template <class F>
struct LossValue {
    F f;
    template <class C>
    YOKE_HD C operator()(C x, C target) const
    {
        return f.value(x, target);
    }
};

template <class C>
using LossSum = typename kernels::Sum<C>::State;

// Returns the sum over elements [begin, end). Fills a buffer, independent of the runs, and then adds up the buffer.
template <class C>
static LossSum<C> sum_losses(const MapLoop &value, const yoke_dtype *dtypes, const Loop<3> &loop,
                             int64_t begin, int64_t end)
{
    const kernels::Sum<C> add;
    C buffer[kLossChunk];
    LossSum<C> total = add.init();
    int64_t filled = 0;
    auto add_up = [&] {
        const auto at = [&](int64_t i) { return buffer[i]; };
        total = add.combine(
            total, kernels::parts_state(add, filled, kernels::sum_block<C>(0, filled, at), at));
        filled = 0;
    };
    walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
        const int64_t steps[3] = {sizeof(C), stride[1], stride[2]};
        for (int64_t first = 0; first < n;) {
            int64_t count = min(n - first, kLossChunk - filled);
            char *const place[3] = {(char *)(buffer + filled), data[1] + first * stride[1],
                                    data[2] + first * stride[2]};
            map_run(value, dtypes, place, steps, count);
            first += count;
            filled += count;
            if (filled == kLossChunk) add_up();
        }
    });
    add_up();
    return total;
}

template <class C>
static yoke_status reduced_loss(const yoke_launch *launch, const MapLoop &value, double divisor)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const kernels::BroadcastShape shape(x, target, x.data);
    Loop<3> loop;
    plan_loop<3>(loop, {&shape.operand, &x, &target});
    int64_t items = divide_up(loop.numel, kLossItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(items + 1) * sizeof(LossSum<C>)))
        return status;
    auto *sums = static_cast<LossSum<C> *>(scratch.data());
    const yoke_dtype dtypes[3] = {kernels::dtype_of<C>, x.dtype, target.dtype};
    if (items)
        parallel_items(items, [&](int64_t item) {
            sums[item] = sum_losses<C>(value, dtypes, loop, item * kLossItem,
                                       min(loop.numel, (item + 1) * kLossItem));
        });
    const kernels::Sum<C> add;
    LossSum<C> all = add.init();
    for (int64_t item = 0; item < items; item++) all = add.combine(all, sums[item]);
    const C total = (C)add.mean(all, divisor);
    store_elements(out.dtype, &total, data_of<char>(out), dtype_size(out.dtype), 1);
    return YOKE_OK;
}

// Returns YOKE_E_VALUE if x has a value outside [0, 1], or NaN, before a logarithm uses the value.
static yoke_status check_probabilities(const yoke_launch *launch, const yoke_operand &x)
{
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        Loop<1> loop;
        plan_loop<1>(loop, {&x});
        bool bad = false;
        C found = (C)0;
        walk<1>(loop, 0, loop.numel, [&](char *const *data, const int64_t *stride, int64_t n) {
            for (int64_t first = 0; first < n && !bad; first += kLossChunk) {
                C buffer[kLossChunk];
                int64_t count = min(kLossChunk, n - first);
                const C *xs = static_cast<const C *>(
                    load_elements(x.dtype, data[0] + first * stride[0], stride[0], count, buffer));
                int outside = 0;
                for (int64_t i = 0; i < count; i++) outside |= !(xs[i] >= (C)0) | !(xs[i] <= (C)1);
                for (int64_t i = 0; i < count && outside && !bad; i++)
                    if (!(xs[i] >= (C)0 && xs[i] <= (C)1)) bad = true, found = xs[i];
            }
        });
        if (!bad) return (yoke_status)YOKE_OK;
        return fail(
            YOKE_E_VALUE,
            "binary_cross_entropy: argument 'x' has an element of %g; probabilities must be between 0 and 1 (for logits, call binary_cross_entropy_with_logits)",
            (double)found);
    });
}

YOKE_KERNEL(_pair_loss)
{
    const yoke_operand &x = launch->operands[0], &target = launch->operands[1];
    const yoke_operand &out = launch->operands[2];
    const yoke_arg *p = launch->params;
    bool reduce = p[2].v.i != 0;
    double divisor = float_param(p[3]);
    if (strcmp(p[0].v.string, "bce") == 0)
        if (yoke_status status = check_probabilities(launch, x)) return status;
    return for_kind(launch, p[0].v.string, float_param(p[1]), [&]<class F>(const F &f) {
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            using C = compute_type<T>;
            LossValue<F> value{f};
            if (reduce) return reduced_loss<C>(launch, make_map<C, C, C>(value), divisor);
            return map<C, C, C>(value, kLossGrain, out, x, target);
        });
    });
}

// ---- gradients --------------------------------------------------------------------------------------------------

template <class F, class C, bool kOfTarget>
struct LossGradient {
    F f;
    C scale;
    YOKE_HD C operator()(C g, C x, C target) const
    {
        return g * scale * (kOfTarget ? f.of_target(x, target) : f.of_x(x, target)) *
               (C)kernels::kSlopeFactor<F>;
    }
};

YOKE_KERNEL(_pair_loss_backward)
{
    const yoke_operand *o = launch->operands;
    const yoke_arg *p = launch->params;
    bool of_target = p[3].v.i != 0;
    return for_kind(launch, p[0].v.string, float_param(p[1]), [&]<class F>(const F &f) {
        return for_float(launch, "x", o[1].dtype, [&]<class T>() {
            using C = compute_type<T>;
            C scale = (C)(1 / float_param(p[2]));
            if (of_target)
                return map<C, C, C, C>(LossGradient<F, C, true>{f, scale}, kLossGrain, o[3], o[0],
                                       o[1], o[2]);
            return map<C, C, C, C>(LossGradient<F, C, false>{f, scale}, kLossGrain, o[3], o[0],
                                   o[1], o[2]);
        });
    });
}

YOKE_SIMD_END
