// Random numbers: Philox counters, so that element i of a draw is the same whichever thread makes it. This file is
// compiled without contraction, as kernels/common/random_math.h asks.
#include "kernels/common/draw.h"

#include "kernels/common/stand_in.h"
#include "kernels/cpu/simd/copy.h"

YOKE_SIMD_BEGIN

constexpr int64_t kRandomGrain = 8192;
constexpr int64_t kBlock = 256;  // elements of a mask made at once; a multiple of its columns

// Row-major tensor to fill in place of x: x itself, or scratch that finish() copies into x.
class Filled {
public:
    Filled(const yoke_launch *launch, const yoke_operand &x)
        : launch_(launch), x_(x), scratch_(launch), row_major_(x)
    {
        if (!is_contiguous(x)) kernels::row_major_strides(x, strides_);
    }

    yoke_status begin()
    {
        if (is_contiguous(x_)) return YOKE_OK;
        uint64_t bytes = (uint64_t)(x_.numel * dtype_size(x_.dtype));
        if (yoke_status status = scratch_.reserve(bytes)) return status;
        row_major_.data = scratch_.data();
        row_major_.strides = strides_;
        row_major_.flags |= YOKE_OPERAND_CONTIGUOUS;
        return YOKE_OK;
    }

    const yoke_operand &row_major() const { return row_major_; }

    yoke_status finish()
    {
        return is_contiguous(x_) ? YOKE_OK : copy_operand(launch_, x_, row_major_);
    }

private:
    const yoke_launch *launch_;
    const yoke_operand &x_;
    Scratch scratch_;
    yoke_operand row_major_;
    int64_t strides_[YOKE_MAX_NDIM];
};

// Calls make(row_major), which fills a row-major tensor, and moves the result to x.
template <class F>
static yoke_status fill_row_major(const yoke_launch *launch, const yoke_operand &x, const F &make)
{
    Filled filled(launch, x);
    if (yoke_status status = filled.begin()) return status;
    if (yoke_status status = make(filled.row_major())) return status;
    return filled.finish();
}

template <class T, class D>
static yoke_status draw_into(const yoke_operand &x, const D &draw, const yoke_arg *seed_and_offset)
{
    const kernels::DrawPlace place(seed_and_offset);
    parallel_range(x.numel, kRandomGrain, [&](int64_t begin, int64_t end) {
        kernels::random_fill<T>(draw, place.seed, place.offset, begin, end, data_of<T>(x));
    });
    return YOKE_OK;
}

YOKE_KERNEL(_uniform)
{
    const double low = float_param(launch->params[0]), high = float_param(launch->params[1]);
    return fill_row_major(launch, launch->operands[0], [&](const yoke_operand &x) {
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            return draw_into<T>(x, kernels::UniformBetween<T>(low, high), launch->params + 2);
        });
    });
}

YOKE_KERNEL(_normal)
{
    return fill_row_major(launch, launch->operands[0], [&](const yoke_operand &x) {
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            using C = compute_type<T>;
            const kernels::ScaledNormal<T> draw{(C)float_param(launch->params[0]),
                                                (C)float_param(launch->params[1])};
            return draw_into<T>(x, draw, launch->params + 2);
        });
    });
}

YOKE_KERNEL(_exponential)
{
    return fill_row_major(launch, launch->operands[0], [&](const yoke_operand &x) {
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            const kernels::Exponential<T> draw{(compute_type<T>)float_param(launch->params[0])};
            return draw_into<T>(x, draw, launch->params + 1);
        });
    });
}

YOKE_KERNEL(_bernoulli_fill)
{
    const kernels::Keep draw = kernels::Keep::dropping(1 - float_param(launch->params[0]));
    return fill_row_major(launch, launch->operands[0], [&](const yoke_operand &x) {
        return for_any(launch, "x", x.dtype,
                       [&]<class T>() { return draw_into<T>(x, draw, launch->params + 1); });
    });
}

YOKE_KERNEL(_randint)
{
    kernels::UniformInteger draw{launch->params[0].v.i, launch->params[1].v.i};
    if (draw.low >= draw.high)
        return fail(YOKE_E_VALUE, "randint: low is %lld and high is %lld; low must be below high",
                    (long long)draw.low, (long long)draw.high);
    return fill_row_major(launch, launch->operands[0], [&](const yoke_operand &x) {
        return for_any(launch, "x", x.dtype,
                       [&]<class T>() { return draw_into<T>(x, draw, launch->params + 2); });
    });
}

// ---- dropout ----------------------------------------------------------------------------------------------------

// Writes out[i] = kept ? x[i] * scale : 0, where the mask is a draw at (seed, offset). x may be out.
template <class T>
static void drop(const yoke_launch *launch, const T *x, T *out, int64_t n)
{
    using C = compute_type<T>;
    double p = float_param(launch->params[0]);
    const kernels::DrawPlace place(launch->params + 1);
    kernels::Keep keep = kernels::Keep::dropping(p);
    C scale = kernels::dropout_scale<C>(p);
    parallel_range(divide_up(n, kBlock), kRandomGrain / kBlock, [&](int64_t begin, int64_t end) {
        bool mask[kBlock];
        for (int64_t first = begin * kBlock; first < min(end * kBlock, n); first += kBlock) {
            int64_t count = min(kBlock, n - first);
            uint64_t counter = place.offset + (uint64_t)(first / kernels::Keep::kDraws);
            kernels::random_fill<bool>(keep, place.seed, counter, 0, count, mask);
            for (int64_t i = 0; i < count; i++)
                out[first + i] = mask[i] ? store<T>(load<T>(x[first + i]) * scale) : store<T>(0);
        }
    });
}

YOKE_KERNEL(_dropout)
{
    const yoke_operand &x = launch->operands[0];
    return fill_row_major(launch, launch->operands[1], [&](const yoke_operand &out) {
        const yoke_operand &in = is_contiguous(x) ? x : out;
        if (!is_contiguous(x))
            if (yoke_status status = copy_operand(launch, out, x)) return status;
        return for_float(launch, "x", x.dtype, [&]<class T>() {
            drop<T>(launch, data_of<T>(in), data_of<T>(out), out.numel);
            return (yoke_status)YOKE_OK;
        });
    });
}

// ---- permutation ------------------------------------------------------------------------------------------------

// Fills `order` with a random permutation, by the shuffle of Fisher and Yates. From the last place on, place i takes
// one of the i + 1 remaining numbers, by element n - 1 - i of a draw of 64-bit words.
static void shuffle(int64_t *order, int64_t n, const kernels::DrawPlace &place)
{
    for (int64_t i = 0; i < n; i++) order[i] = i;
    kernels::Words block = {};
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t draw = n - 1 - i;
        if (draw % 2 == 0)
            block = kernels::random_block(place.seed, place.offset + (uint64_t)(draw / 2));
        uint64_t word = kernels::word64(block, (int)(draw % 2));
        int64_t j = (int64_t)kernels::multiply_high(word, (uint64_t)i + 1);
        int64_t taken = order[i];
        order[i] = order[j];
        order[j] = taken;
    }
}

YOKE_KERNEL(_randperm)
{
    const yoke_operand &x = launch->operands[0];
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)x.numel * sizeof(int64_t))) return status;
    yoke_operand order = x;
    const int64_t stride = 1;
    order.data = scratch.data();
    order.strides = &stride;
    order.dtype = YOKE_I64;
    order.flags = YOKE_OPERAND_READ | YOKE_OPERAND_CONTIGUOUS;
    shuffle(data_of<int64_t>(order), x.numel, kernels::DrawPlace(launch->params));
    return copy_operand(launch, x, order);
}

YOKE_SIMD_END
