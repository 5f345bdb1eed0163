// sum, mean, prod, amax, amin, all and any over any set of axes.
#include "kernels/common/prod.h"
#include "kernels/cuda/ops/extreme.cuh"
#include "kernels/cuda/ops/reduce.cuh"

YOKE_CUDA_BEGIN

// ---- sums, products and extremes ------------------------------------------------------------------------------------

// Kinds of a total, except sums and products of floats, which have separate kernels. A kernel gets its kind at run
// time.
enum class Kind { kSum, kProduct, kExtreme };

// A sum of integers, a product, or the largest or smallest element.
template <class In, class C = typename In::Value>
struct Total {
    using Element = C;
    using State = C;
    Kind kind;
    int dtype;  // dtype of the result
    Ordered<C> order;

    __device__ bool adds() const { return !is_float<C> && kind == Kind::kSum; }
    __device__ bool multiplies() const { return !is_float<C> && kind == Kind::kProduct; }
    __device__ Element element(C x) const { return order.turned(x); }
    __device__ State init() const
    {
        if (adds()) return (C)0;
        return multiplies() ? (C)1 : kernels::Amax<C>().init();
    }
    __device__ State reduce(State s, Element x, int64_t) const { return combine(s, x); }
    __device__ State combine(State a, State b) const
    {
        if (adds()) return kernels::Add()(a, b);
        return multiplies() ? kernels::Mul()(a, b) : kernels::Amax<C>().combine(a, b);
    }
    __device__ void put(char *out, State state) const
    {
        put_one<In>(dtype, out, order.turned(state));
    }
};

// A sum of floats, divided by a number, 1 if it is no mean.
template <class In, class C = typename In::Value>
struct FloatTotal : OfValues<C, kernels::FloatSum<C>> {
    double divisor;
    __device__ void put(char *out, typename kernels::FloatSum<C>::State state) const
    {
        put_one<In>(this->dtype, out, this->mean(state, divisor));
    }
};

using kernels::ScaledProduct;

// Multiplies products that keep their exponents apart. Not inlined, so the code exists once.
__device__ __attribute__((noinline)) inline ScaledProduct times_apart(ScaledProduct a,
                                                                      ScaledProduct b)
{
    return a.times(b);
}

// Multiplies such a product by a number.
__device__ __attribute__((noinline)) inline ScaledProduct times_number(ScaledProduct a, double x)
{
    return a.times(ScaledProduct::of(x));
}

template <class In, class C = typename In::Value>
struct FloatProduct : OfValues<C, kernels::FloatProd<C>> {
    __device__ ScaledProduct combine(ScaledProduct a, ScaledProduct b) const
    {
        return times_apart(a, b);
    }
    template <class At>
    __device__ ScaledProduct careful(int64_t n, const At &at) const
    {
        ScaledProduct product = this->init();
        YOKE_UNROLL
        for (int64_t i = 0; i < n; ++i) product = times_number(product, (double)at(i));
        return product;
    }
    __device__ void put(char *out, ScaledProduct state) const
    {
        put_one<In>(this->dtype, out, this->project(state, 0));
    }
};

static yoke_status reduce_by_kind(const yoke_launch *launch, Kind kind, bool smallest,
                                  double divisor = 1)
{
    const yoke_dtype from = launch->operands[0].dtype, to = launch->operands[1].dtype;
    return for_any_format(launch, "x", from, [&]<class In>() {
        using C = typename In::Value;
        if constexpr (is_float<C>) {
            if (kind == Kind::kSum) return reduce<In>(launch, FloatTotal<In>{{{}, to}, divisor});
            if (kind == Kind::kProduct) return reduce<In>(launch, FloatProduct<In>{{{}, to}});
        }
        return reduce<In>(launch, Total<In>{kind, to, Ordered<C>(smallest)});
    });
}

// Returns whether sums of a dtype may have this result: halves as float32, integers as int64, floats as themselves.
static bool fits(yoke_dtype of, yoke_dtype result)
{
    if (of == YOKE_F32 || of == YOKE_BF16 || of == YOKE_F16)
        return result == of || result == YOKE_F32;
    return result == (of == YOKE_F64 ? YOKE_F64 : YOKE_I64);
}

static yoke_status reduce_to_total(const yoke_launch *launch, Kind kind, double divisor = 1)
{
    const yoke_dtype from = launch->operands[0].dtype, to = launch->operands[1].dtype;
    if (!fits(from, to)) return bad_dtype(launch, "the result", to);
    return reduce_by_kind(launch, kind, false, divisor);
}

YOKE_KERNEL(sum)
{
    return reduce_to_total(launch, Kind::kSum);
}

YOKE_KERNEL(mean)
{
    const yoke_operand &x = launch->operands[0];
    return reduce_to_total(launch, Kind::kSum,
                           (double)kernels::elements_a_result(x, launch->operands[1]));
}

YOKE_KERNEL(prod)
{
    return reduce_to_total(launch, Kind::kProduct);
}

static yoke_status reduce_to_extreme(const yoke_launch *launch, bool smallest, const char *what)
{
    const yoke_operand &x = launch->operands[0];
    if (x.numel == 0 && launch->operands[1].numel > 0)
        return fail(YOKE_E_VALUE, 0, "%s: x has no elements to take the %s of", op_name(launch->op),
                    what);
    return reduce_by_kind(launch, Kind::kExtreme, smallest);
}

YOKE_KERNEL(amax)
{
    return reduce_to_extreme(launch, false, "largest");
}

YOKE_KERNEL(amin)
{
    return reduce_to_extreme(launch, true, "smallest");
}

// ---- truth ----------------------------------------------------------------------------------------------------------

// Reduces to whether any element is not 0 (`truth`), or whether no element is 0.
static yoke_status reduce_to_bool(const yoke_launch *launch, bool truth)
{
    const yoke_dtype dtype = launch->operands[0].dtype;
    return reduce<Words>(launch, CountNonzero{nonzero_mask(dtype), truth, false});
}

YOKE_KERNEL(all)
{
    return reduce_to_bool(launch, false);
}

YOKE_KERNEL(any)
{
    return reduce_to_bool(launch, true);
}

YOKE_CUDA_END
