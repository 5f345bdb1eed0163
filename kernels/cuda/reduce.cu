// sum, mean, prod, amax, amin, all and any over any set of axes.
#include "kernels/cuda/extreme.cuh"
#include "kernels/cuda/reduce.cuh"

YOKE_CUDA_BEGIN

// ---- sums and products ----------------------------------------------------------------------------------------------

// sum, or with mean's divisor the mean; or prod. F is kernels::Sum or kernels::Prod.
template <class T, template <class> class F>
struct Total : Loaded<T, F<T>> {
    using State = kernels::sum_type<T>;
    State divisor;  // 0 for none
    bool divides, is_wide;
    __device__ void put(char *out, State state) const
    {
        if constexpr (is_float<T>) {
            if (divides) state = state / divisor;
            put_result<T>(out, is_wide, state);
        } else {
            *(State *)out = state;
        }
    }
};

template <template <class> class F>
static yoke_status reduce_to_total(const yoke_launch *launch, int64_t divisor)
{
    const yoke_operand &x = launch->operands[0];
    const yoke_dtype dtype = launch->operands[1].dtype;
    return for_number(launch, "x", without_bool(x.dtype), [&]<class T>() {
        const bool is_wide = dtype != x.dtype;
        const bool fits =
            is_float<T> ? !is_wide || (is_half<T> && dtype == YOKE_F32) : dtype == YOKE_I64;
        if (!fits) return bad_dtype(launch, "the result", dtype);
        Total<T, F> op{};
        op.divides = divisor >= 0;
        op.divisor = (typename Total<T, F>::State)divisor;
        op.is_wide = is_wide;
        return reduce<T>(launch, op);
    });
}

YOKE_KERNEL(sum)
{
    return reduce_to_total<kernels::Sum>(launch, -1);
}

YOKE_KERNEL(mean)
{
    const yoke_operand &x = launch->operands[0];
    const int64_t results = launch->operands[1].numel;
    return reduce_to_total<kernels::Sum>(launch, results ? x.numel / results : 0);
}

YOKE_KERNEL(prod)
{
    return reduce_to_total<kernels::Prod>(launch, -1);
}

// ---- extremes -------------------------------------------------------------------------------------------------------

static yoke_status reduce_to_extreme(const yoke_launch *launch, bool smallest, const char *what)
{
    const yoke_operand &x = launch->operands[0];
    if (x.numel == 0 && launch->operands[1].numel > 0)
        return fail(YOKE_E_VALUE, 0, "%s: x has no elements to take the %s of", op_name(launch->op),
                    what);
    return for_number(launch, "x", without_bool(x.dtype), [&]<class T>() {
        return reduce<T>(launch, Extreme<T>{{}, Ordered<T>(smallest)});
    });
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

// Whether any element is true, or is not: all are true where none is not.
template <class T>
struct Exists {
    using Element = uint32_t;
    using State = uint32_t;
    T mask;  // without the sign of a float
    bool truth;
    __device__ Element element(T x) const { return ((x & mask) != 0) == truth; }
    __device__ State init() const { return 0; }
    __device__ State reduce(State s, Element x, int64_t) const { return s | x; }
    __device__ State combine(State a, State b) const { return a | b; }
    __device__ void put(char *out, State s) const { *(bool *)out = (s != 0) == truth; }
};

static yoke_status reduce_to_bool(const yoke_launch *launch, bool truth)
{
    const yoke_dtype dtype = launch->operands[0].dtype;
    return for_size(launch, "x", dtype_size(dtype), [&]<class T>() {
        return reduce<T>(launch, Exists<T>{nonzero_mask<T>(dtype), truth});
    });
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
