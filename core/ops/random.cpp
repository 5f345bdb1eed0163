// random.cpp: new tensors of random numbers, and dropout. draws.cpp fills tensors.
#include "core/base/default_dtype.h"
#include "core/ops/draws.h"
#include "core/select/select.h"

namespace yoke {

namespace {

// Makes a tensor and fills it by `draw(x, seed, offset)`, at the next place of the stream.
template <class Draw>
Tensor drawn(IntList shape, yoke_dtype dtype, Device *device, yoke_generator *generator,
             const char *call, Draw draw)
{
    Tensor x = make_empty(device ? *device : current_device(), dtype, shape, call);
    const RandomState at = reserve_random(x->numel, generator, call);
    draw(x, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
    return x;
}

yoke_dtype floating_or_f32(yoke_dtype dtype, const char *call)
{
    if (dtype == YOKE_NONE) return default_dtype();
    check_dtype(dtype, call);
    if (!is_floating(dtype))
        fail(YOKE_E_TYPE,
             "%s: argument 'dtype' is %s; it takes a floating dtype (randint gives integers)", call,
             name(dtype));
    return dtype;
}

Tensor make_uniform(IntList shape, yoke_dtype dtype, Device *device, yoke_generator *generator,
                    const char *call)
{
    return drawn(shape, floating_or_f32(dtype, call), device, generator, call,
                 [](yoke_tensor &x, int64_t seed, int64_t offset) {
                     ops::uniform(x, 0.0, 1.0, seed, offset);
                 });
}

Tensor make_normal(double mean, double std, IntList shape, yoke_dtype dtype, Device *device,
                   yoke_generator *generator, const char *call)
{
    return drawn(shape, floating_or_f32(dtype, call), device, generator, call,
                 [=](yoke_tensor &x, int64_t seed, int64_t offset) {
                     ops::normal_internal(x, mean, std, seed, offset);
                 });
}

Tensor make_randint(int64_t low, int64_t high, IntList shape, yoke_dtype dtype, Device *device,
                    yoke_generator *generator, const char *call)
{
    const yoke_dtype chosen = dtype == YOKE_NONE ? YOKE_I64 : dtype;
    check_dtype(chosen, call);
    check_range(low, high, chosen, call);
    return drawn(shape, chosen, device, generator, call,
                 [=](yoke_tensor &x, int64_t seed, int64_t offset) {
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
    return make_uniform(a.shape(), a.dtype(), a.device(), a.generator(), "rand");
}

Tensor compose_randn(RandnArgs a)
{
    return make_normal(0, 1, a.shape(), a.dtype(), a.device(), a.generator(), "randn");
}

Tensor compose_randint(RandintArgs a)
{
    return make_randint(a.low(), a.high(), a.shape(), a.dtype(), a.device(), a.generator(),
                        "randint");
}

Tensor compose_rand_like(RandLikeArgs a)
{
    return make_uniform(a.x().shape(), like(a.x(), a.dtype()), like(a.x(), a.device()),
                        a.generator(), "rand_like");
}

Tensor compose_randn_like(RandnLikeArgs a)
{
    return make_normal(0, 1, a.x().shape(), like(a.x(), a.dtype()), like(a.x(), a.device()),
                       a.generator(), "randn_like");
}

Tensor compose_randint_like(RandintLikeArgs a)
{
    return make_randint(a.low(), a.high(), a.x().shape(), like(a.x(), a.dtype()),
                        like(a.x(), a.device()), a.generator(), "randint_like");
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
    return drawn({&n, 1}, dtype, a.device(), a.generator(), "randperm",
                 [](yoke_tensor &x, int64_t seed, int64_t offset) {
                     ops::randperm_internal(x, seed, offset);
                 });
}

// Returns mean + std * z for standard normals z, computed in float32 or float64 and rounded once.
static Tensor normal_of_tensors(NormalArgs a)
{
    constexpr const char *kCall = "normal";
    if (a.shape() || a.dtype() != YOKE_NONE || a.device())
        fail(
            YOKE_E_VALUE,
            "normal: argument '%s' is given beside a tensor; it is for two numbers, so leave it out",
            a.shape()    ? "shape"
            : a.device() ? "device"
                         : "dtype");
    const auto tensor = [](const yoke_arg &value) {
        return is_scalar(value) ? nullptr : value.v.tensor;
    };
    const yoke_tensor *mean = tensor(a.mean()), *std = tensor(a.std());
    if (mean) check_computable(*mean, kCall, "mean");
    if (std) check_computable(*std, kCall, "std");
    const yoke_tensor &x = mean ? *mean : *std, &y = std ? *std : *mean;
    const yoke_dtype dtype = promote(x.dtype, y.dtype);
    const NoGrad plain;
    Tensor z =
        drawn(broadcast(x.shape(), y.shape(), kCall), dtype == YOKE_F64 ? dtype : YOKE_F32,
              x.device, a.generator(), kCall, [](yoke_tensor &to, int64_t seed, int64_t offset) {
                  ops::normal_internal(to, 0.0, 1.0, seed, offset);
              });
    z = ops::mul(z, a.std());
    return ops::cast(ops::add(z, a.mean()), dtype);
}

Tensor compose_normal(NormalArgs a)
{
    if (!is_scalar(a.mean()) || !is_scalar(a.std())) {
        if (is_scalar(a.std())) check_deviation(scalar_f64(a.std()), "normal");
        return normal_of_tensors(a);
    }
    if (!a.shape())
        fail(YOKE_E_VALUE,
             "normal: arguments 'mean' and 'std' are numbers; argument 'shape' must be given, too");
    check_deviation(scalar_f64(a.std()), "normal");
    return make_normal(scalar_f64(a.mean()), scalar_f64(a.std()), *a.shape(), a.dtype(), a.device(),
                       a.generator(), "normal");
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
