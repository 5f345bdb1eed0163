// random.cpp: random numbers and dropout.
#include "core/base/random.h"

#include "core/ops/family.h"
#include "core/select/select.h"

namespace yoke {

namespace {

// Makes a tensor and fills it by `draw(x, seed, offset)`, at the next place of the thread's random numbers.
template <class Draw>
Tensor drawn(IntList shape, yoke_dtype dtype, Device *device, const char *call, Draw draw)
{
    Tensor x = make_empty(device ? *device : current_device(), dtype, shape, call);
    const RandomState at = reserve_random(x->numel);
    draw(x, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
    return x;
}

yoke_dtype floating_or_f32(yoke_dtype dtype, const char *call)
{
    if (dtype == YOKE_NONE) return YOKE_F32;
    check_dtype(dtype, call);
    if (!is_floating(dtype))
        fail(YOKE_E_TYPE,
             "%s: argument 'dtype' is %s; it takes a floating dtype (randint gives integers)", call,
             name(dtype));
    return dtype;
}

// Whole numbers from `least` to `most`, all of them exact in a dtype.
struct WholeRange {
    int64_t least, most;
};

// Returns the range of a dtype. A float with a fraction of n bits has every whole number up to 2^(n + 1). Beyond,
// rounding could draw `high` itself, or infinity.
WholeRange whole_range(yoke_dtype dtype)
{
    const DtypeInfo &about = info(dtype);
    if (about.kind == DtypeClass::kBool) return {0, 1};
    if (about.kind == DtypeClass::kFloat) {
        const int64_t most = int64_t{1} << (about.fraction + 1);
        return {-most, most};
    }
    const int bits = 8 * about.size - (about.is_signed ? 1 : 0);
    const auto most = static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    return {about.is_signed ? -most - 1 : 0, most};
}

void check_range(int64_t low, int64_t high, yoke_dtype dtype, const char *call)
{
    if (low >= high)
        fail(YOKE_E_VALUE, "%s: argument 'low' is %lld and 'high' %lld; low must be below high",
             call, static_cast<long long>(low), static_cast<long long>(high));
    const WholeRange whole = whole_range(dtype);
    if (low >= whole.least && high - 1 <= whole.most) return;
    fail(
        YOKE_E_VALUE,
        "%s: [%lld, %lld) does not fit into %s, which holds all whole numbers from %lld to %lld; choose a wider dtype",
        call, static_cast<long long>(low), static_cast<long long>(high), name(dtype),
        static_cast<long long>(whole.least), static_cast<long long>(whole.most));
}

Tensor make_uniform(IntList shape, yoke_dtype dtype, Device *device, const char *call)
{
    return drawn(
        shape, floating_or_f32(dtype, call), device, call,
        [](yoke_tensor &x, int64_t seed, int64_t offset) { ops::uniform(x, seed, offset); });
}

Tensor make_normal(IntList shape, yoke_dtype dtype, Device *device, const char *call)
{
    return drawn(
        shape, floating_or_f32(dtype, call), device, call,
        [](yoke_tensor &x, int64_t seed, int64_t offset) { ops::normal(x, seed, offset); });
}

Tensor make_randint(int64_t low, int64_t high, IntList shape, yoke_dtype dtype, Device *device,
                    const char *call)
{
    const yoke_dtype chosen = dtype == YOKE_NONE ? YOKE_I64 : dtype;
    check_dtype(chosen, call);
    check_range(low, high, chosen, call);
    return drawn(shape, chosen, device, call, [=](yoke_tensor &x, int64_t seed, int64_t offset) {
        ops::randint_internal(x, low, high, seed, offset);
    });
}

yoke_dtype like(const yoke_tensor &x, yoke_dtype dtype)
{
    return dtype == YOKE_NONE ? x.dtype : dtype;
}

Device *like(const yoke_tensor &x, Device *device)
{
    return device ? device : x.device;
}

}  // namespace

Tensor compose_rand(RandArgs a)
{
    return make_uniform(a.shape(), a.dtype(), a.device(), "rand");
}

Tensor compose_randn(RandnArgs a)
{
    return make_normal(a.shape(), a.dtype(), a.device(), "randn");
}

Tensor compose_randint(RandintArgs a)
{
    return make_randint(a.low(), a.high(), a.shape(), a.dtype(), a.device(), "randint");
}

Tensor compose_rand_like(RandLikeArgs a)
{
    return make_uniform(a.x().shape(), like(a.x(), a.dtype()), like(a.x(), a.device()),
                        "rand_like");
}

Tensor compose_randn_like(RandnLikeArgs a)
{
    return make_normal(a.x().shape(), like(a.x(), a.dtype()), like(a.x(), a.device()),
                       "randn_like");
}

Tensor compose_randint_like(RandintLikeArgs a)
{
    return make_randint(a.low(), a.high(), a.x().shape(), like(a.x(), a.dtype()),
                        like(a.x(), a.device()), "randint_like");
}

Tensor compose_randperm(RandpermArgs a)
{
    const yoke_dtype dtype = a.dtype() == YOKE_NONE ? YOKE_I64 : a.dtype();
    check_dtype(dtype, "randperm");
    if (a.n() < 0)
        fail(YOKE_E_VALUE, "randperm: argument 'n' is %lld; it must not be negative",
             static_cast<long long>(a.n()));
    if (dtype != YOKE_I64 && !(dtype == YOKE_I32 && a.n() <= INT32_MAX))
        fail(YOKE_E_TYPE,
             "randperm: argument 'dtype' is %s for n = %lld; it takes int64, or int32 if n fits",
             name(dtype), static_cast<long long>(a.n()));
    const int64_t n = a.n();
    return drawn({&n, 1}, dtype, a.device(), "randperm",
                 [](yoke_tensor &x, int64_t seed, int64_t offset) {
                     ops::randperm_internal(x, seed, offset);
                 });
}

Tensor compose_dropout(DropoutArgs a)
{
    if (!(a.p() >= 0 && a.p() <= 1))
        fail(YOKE_E_VALUE, "dropout: argument 'p' is %g; it must be a probability between 0 and 1",
             a.p());
    check_floating(a.x(), "dropout", "x");
    if (!a.training() || a.p() == 0) return Tensor::share(const_cast<yoke_tensor *>(&a.x()));
    const RandomState at = reserve_random(a.x().numel);
    return ops::dropout_internal(a.x(), a.p(), static_cast<int64_t>(at.seed),
                                 static_cast<int64_t>(at.offset));
}

void vjp_dropout_internal(DropoutInternalArgs a, Backward &b)
{
    // With the same counters, the mask is the same.
    b.set(a.kX, ops::dropout_internal(b.grad(), a.p(), a.seed(), a.offset()));
}

}  // namespace yoke
