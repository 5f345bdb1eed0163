// draws.cpp: random numbers into existing tensors, and draws by probabilities or weights.
#include "core/ops/draws.h"

#include <atomic>
#include <cmath>

namespace yoke {

RandomState reserve_random(int64_t elements, yoke_generator *generator, const char *call)
{
    if (!generator) return reserve_random(elements);
    if (thread_state().graph)
        fail(
            YOKE_E_STATE,
            "%s: argument 'generator' is given in a capture, but replays of a graph draw from the stream of their thread; leave 'generator' out",
            call);
    const std::atomic_ref<uint64_t> offset(generator->offset);
    return {generator->seed, offset.fetch_add(counters_of(elements))};
}

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

void check_deviation(double std, const char *call)
{
    if (std::isfinite(std) && std >= 0) return;
    fail(YOKE_E_VALUE, "%s: argument 'std' is %g; it must be finite, and 0 or more", call, std);
}

namespace {

// Fills x by `draw(x, seed, offset)`, at the next place of the stream. If x has a gradient, the tape first records
// zeros: x's old values have no effect any more.
template <class Draw>
void refill(yoke_tensor &x, yoke_generator *generator, const char *call, Draw draw)
{
    if (grad_enabled() && x.requires_grad()) ops::fill_(x, int64_t{0});
    const RandomState at = reserve_random(x.numel, generator, call);
    draw(x, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
}

void check_probability(double p, const char *call)
{
    if (p >= 0 && p <= 1) return;
    fail(YOKE_E_VALUE, "%s: argument 'p' is %g; it must be a probability between 0 and 1", call, p);
}

// Returns 1 with the probability that p has at each place, else 0, in p's dtype.
Tensor happened(const yoke_tensor &p, yoke_generator *generator, const char *call)
{
    const RandomState at = reserve_random(p.numel, generator, call);
    return ops::bernoulli_internal(ops::contiguous(p), static_cast<int64_t>(at.seed),
                                   static_cast<int64_t>(at.offset));
}

void fill_happened(yoke_tensor &x, double p, yoke_generator *generator, const char *call)
{
    check_probability(p, call);
    refill(x, generator, call, [p](yoke_tensor &to, int64_t seed, int64_t offset) {
        ops::bernoulli_fill(to, p, seed, offset);
    });
}

void check_weights(const yoke_tensor &x, int64_t count, bool replacement)
{
    constexpr const char *kCall = "multinomial";
    check_computable(x, kCall, "x");
    if (x.ndim != 1 && x.ndim != 2)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must be [C], or [N, C]", kCall,
             to_string(x.shape()).c_str());
    const int64_t classes = x.shape_[x.ndim - 1];
    if (classes < 1)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must have at least 1 weight", kCall,
             to_string(x.shape()).c_str());
    if (count < 1)
        fail(YOKE_E_VALUE, "%s: argument 'num_samples' is %lld; it must be at least 1", kCall,
             static_cast<long long>(count));
    if (!replacement && count > classes)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'num_samples' is %lld, but 'x' has %lld weights; without replacement there are %lld at most",
            kCall, static_cast<long long>(count), static_cast<long long>(classes),
            static_cast<long long>(classes));
}

// Returns `count` indices of each row of weights.
Tensor picked(const Tensor &rows, int64_t count, bool replacement, yoke_generator *generator)
{
    constexpr const char *kCall = "multinomial";
    const int64_t n = rows->shape_[0];
    if (replacement && count > 1) {
        const RandomState at =
            reserve_random(checked_numel(Dims{n, count}, kCall), generator, kCall);
        return ops::multinomial_internal(rows, count, static_cast<int64_t>(at.seed),
                                         static_cast<int64_t>(at.offset));
    }
    const RandomState at = reserve_random(rows->numel, generator, kCall);
    const Tensor race =
        ops::race(rows, count, static_cast<int64_t>(at.seed), static_cast<int64_t>(at.offset));
    return count == 1 ? ops::argmax(race, 1, true) : std::move(ops::topk(race, count, 1)[1]);
}

}  // namespace

void compose_normal_(NormalInplaceArgs a)
{
    check_computable(a.x(), "normal_", "x");
    check_deviation(a.std(), "normal_");
    refill(a.x(), a.generator(), "normal_",
           [mean = a.mean(), std = a.std()](yoke_tensor &x, int64_t seed, int64_t offset) {
               ops::normal_internal(x, mean, std, seed, offset);
           });
}

void compose_uniform_(UniformInplaceArgs a)
{
    check_computable(a.x(), "uniform_", "x");
    if (!(a.low() <= a.high()) || !std::isfinite(a.high() - a.low()))
        fail(
            YOKE_E_VALUE,
            "uniform_: argument 'low' is %g and 'high' %g; low must not be above high, and both must be finite",
            a.low(), a.high());
    refill(a.x(), a.generator(), "uniform_",
           [low = a.low(), high = a.high()](yoke_tensor &x, int64_t seed, int64_t offset) {
               ops::uniform(x, low, high, seed, offset);
           });
}

void compose_exponential_(ExponentialInplaceArgs a)
{
    check_computable(a.x(), "exponential_", "x");
    if (!(a.lambd() > 0) || !std::isfinite(a.lambd()))
        fail(YOKE_E_VALUE, "exponential_: argument 'lambd' is %g; it must be finite, and above 0",
             a.lambd());
    refill(a.x(), a.generator(), "exponential_",
           [lambd = a.lambd()](yoke_tensor &x, int64_t seed, int64_t offset) {
               ops::exponential(x, lambd, seed, offset);
           });
}

void compose_random_(RandomInplaceArgs a)
{
    const int64_t most = whole_range(a.x().dtype).most;
    // A single number is the end, as in arange. Without numbers int64 leaves out its largest number, which no end
    // could name.
    int64_t low = 0, high = most == INT64_MAX ? most : most + 1;
    if (a.low() && a.high())
        low = *a.low(), high = *a.high();
    else if (a.low() || a.high())
        high = a.low() ? *a.low() : *a.high();
    check_range(low, high, a.x().dtype, "random_");
    refill(a.x(), a.generator(), "random_",
           [low, high](yoke_tensor &x, int64_t seed, int64_t offset) {
               ops::randint_internal(x, low, high, seed, offset);
           });
}

void compose_bernoulli_(BernoulliInplaceArgs a)
{
    constexpr const char *kCall = "bernoulli_";
    if (is_scalar(a.p())) return fill_happened(a.x(), scalar_f64(a.p()), a.generator(), kCall);
    const yoke_tensor &p = *a.p().v.tensor;
    check_computable(p, kCall, "p");
    if (!broadcasts_to(p.shape(), a.x().shape()))
        fail(YOKE_E_VALUE,
             "%s: argument 'p' has shape %s; it must broadcast to the shape of 'x', %s", kCall,
             to_string(p.shape()).c_str(), to_string(a.x().shape()).c_str());
    Tensor made;
    {
        const NoGrad plain;
        made = happened(*ops::expand(p, a.x().shape()), a.generator(), kCall);
    }
    ops::copy_(a.x(), made);
}

Tensor compose_bernoulli(BernoulliArgs a)
{
    constexpr const char *kCall = "bernoulli";
    const NoGrad plain;
    if (!a.p()) {
        check_computable(a.x(), kCall, "x");
        return happened(a.x(), a.generator(), kCall);
    }
    Tensor out = ops::empty_like(a.x());
    fill_happened(*out, scalar_f64(*a.p()), a.generator(), kCall);
    return out;
}

Tensor compose_multinomial(MultinomialArgs a)
{
    const yoke_tensor &x = a.x();
    const NoGrad plain;
    check_weights(x, a.num_samples(), a.replacement());
    const Tensor rows = ops::contiguous(x.ndim == 2 ? alias(x) : ops::unsqueeze(x, 0));
    const Tensor out = picked(rows, a.num_samples(), a.replacement(), a.generator());
    return x.ndim == 2 ? out : ops::squeeze(out, 0);
}

void infer_multinomial_internal(MultinomialInternalArgs a, Plan &plan)
{
    plan.result(Dims{a.x().shape_[0], a.num_samples()}, YOKE_I64);
}

void infer_race(RaceArgs a, Plan &plan)
{
    plan.result(a.x().shape(), a.x().dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32);
}

}  // namespace yoke
