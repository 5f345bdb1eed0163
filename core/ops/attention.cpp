// attention.cpp: scaled_dot_product_attention: its checks, shape rules and vjps.
//
// Axes before the last two are heads. They broadcast as views, without copies; where several heads of the query share
// one of key and value, the axis of heads is split in two, (key heads, queries' heads for each).
#include "core/base/random.h"
#include "core/ops/family.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace yoke {

namespace {

constexpr const char *kAttention = "scaled_dot_product_attention";

Tensor share(const yoke_tensor &x)
{
    return Tensor::share(const_cast<yoke_tensor *>(&x));
}

long long size_of(const yoke_tensor &x, int from_last)
{
    return static_cast<long long>(x.shape_[x.ndim - from_last]);
}

void check_operand(const yoke_tensor &x, const yoke_tensor &query, const char *arg)
{
    check_floating(x, kAttention, arg);
    if (x.dtype != query.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'query' is %s and '%s' is %s; cast one of them first",
             kAttention, name(query.dtype), arg, name(x.dtype));
    if (x.ndim < 2)
        fail(YOKE_E_VALUE, "%s: argument '%s' has shape %s; it must be [..., length, width]",
             kAttention, arg, to_string(x.shape()).c_str());
}

void check_operands(const yoke_tensor &query, const yoke_tensor &key, const yoke_tensor &value)
{
    check_operand(query, query, "query");
    check_operand(key, query, "key");
    check_operand(value, query, "value");
    if (size_of(query, 1) != size_of(key, 1))
        fail(YOKE_E_VALUE,
             "%s: argument 'query' has width %lld, but 'key' has width %lld; both must be equal",
             kAttention, size_of(query, 1), size_of(key, 1));
    if (size_of(key, 2) != size_of(value, 2))
        fail(YOKE_E_VALUE,
             "%s: argument 'key' has length %lld, but 'value' has length %lld; both must be equal",
             kAttention, size_of(key, 2), size_of(value, 2));
}

void check_groups(const yoke_tensor &query, const yoke_tensor &key, const yoke_tensor &value)
{
    if (query.ndim < 3 || key.ndim < 3 || value.ndim < 3)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'query' has shape %s, 'key' %s and 'value' %s; with enable_gqa they must be [..., heads, length, width]",
            kAttention, to_string(query.shape()).c_str(), to_string(key.shape()).c_str(),
            to_string(value.shape()).c_str());
    if (size_of(key, 3) != size_of(value, 3))
        fail(YOKE_E_VALUE,
             "%s: argument 'key' has %lld heads, but 'value' has %lld; both must be equal",
             kAttention, size_of(key, 3), size_of(value, 3));
    if (size_of(key, 3) == 0 || size_of(query, 3) % size_of(key, 3))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'query' has %lld heads; it must have a multiple of the %lld heads of 'key'",
            kAttention, size_of(query, 3), size_of(key, 3));
}

// Reshapes [..., heads, a, b] to [..., groups, heads / groups, a, b].
Tensor split_heads(const yoke_tensor &x, int64_t groups)
{
    Dims shape{x.shape()};
    const int heads = x.ndim - 3;
    const int64_t each = groups ? shape[heads] / groups : 0;
    shape[heads] = groups;
    shape.insert(heads + 1, each);
    return ops::reshape(x, shape);
}

IntList leading(const yoke_tensor &x)
{
    return x.shape().first(static_cast<size_t>(x.ndim - 2));
}

// Returns a view of x with the leading axes `lead`.
Tensor expand_leading(const yoke_tensor &x, const Dims &lead)
{
    if (same(leading(x), lead)) return share(x);
    Dims shape = lead;
    shape.push_back(x.shape_[x.ndim - 2]);
    shape.push_back(x.shape_[x.ndim - 1]);
    return ops::expand(x, shape);
}

void check_lead(const yoke_tensor &query, const yoke_tensor &other, const char *arg)
{
    const IntList a = leading(query), b = leading(other);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const int64_t x = a[a.size() - 1 - i], y = b[b.size() - 1 - i];
        if (x == y || x == 1 || y == 1) continue;
        fail(
            YOKE_E_VALUE,
            "%s: argument 'query' has shape %s and '%s' %s; the sizes %lld and %lld before the last two axes must broadcast%s",
            kAttention, to_string(query.shape()).c_str(), arg, to_string(other.shape()).c_str(),
            static_cast<long long>(x), static_cast<long long>(y),
            i == 0 ? "; enable_gqa shares heads of key and value" : "");
    }
}

// Call with checked arguments, brought to common leading axes.
struct Attention {
    Tensor query, key, value, mask;
    bool causal;
    double scale, dropout;
    bool shared = false;  // the axis of heads is split: each of key and value serves several

    explicit Attention(ScaledDotProductAttentionArgs a);
    void check_mask(const yoke_tensor &given) const;
    Dims common_lead() const;
    Dims scores_lead() const;
    void share_heads();
    int64_t draws() const;
};

Attention::Attention(ScaledDotProductAttentionArgs a)
    : query(share(a.query())),
      key(share(a.key())),
      value(share(a.value())),
      causal(a.is_causal()),
      dropout(a.dropout_p())
{
    check_operands(*query, *key, *value);
    if (!(dropout >= 0 && dropout <= 1))
        fail(YOKE_E_VALUE,
             "%s: argument 'dropout_p' is %g; it must be a probability between 0 and 1", kAttention,
             dropout);
    const double width = static_cast<double>(size_of(*query, 1));
    scale = a.scale() ? scalar_f64(*a.scale()) : 1 / std::sqrt(std::max(width, 1.0));
    if (a.mask()) mask = share(*a.mask());
    if (a.enable_gqa())
        check_groups(*query, *key, *value);
    else
        check_lead(*query, *key, "key"), check_lead(*query, *value, "value");
    shared = a.enable_gqa() && size_of(*query, 3) != size_of(*key, 3);
    if (mask.present()) check_mask(*mask);
    if (shared) share_heads();
    const Dims lead = common_lead();
    query = expand_leading(*query, lead);
    key = expand_leading(*key, lead);
    value = expand_leading(*value, lead);
}

// Returns the leading axes of query, key and value, broadcast.
Dims Attention::common_lead() const
{
    return broadcast(broadcast(leading(*query), leading(*key), kAttention), leading(*value),
                     kAttention);
}

// Returns the leading axes of the scores, still with the query's heads.
Dims Attention::scores_lead() const
{
    if (!shared) return common_lead();
    const auto without_heads = [](const yoke_tensor &x) {
        Dims lead{leading(x)};
        lead[lead.size() - 1] = 1;
        return lead;
    };
    return broadcast(broadcast(leading(*query), without_heads(*key), kAttention),
                     without_heads(*value), kAttention);
}

void Attention::check_mask(const yoke_tensor &given) const
{
    if (causal)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'mask' is given and 'is_causal' is true; put the causal part into the mask",
            kAttention);
    if (given.dtype != YOKE_BOOL) check_floating(given, kAttention, "mask");
    Dims scores = scores_lead();
    scores.push_back(query->shape_[query->ndim - 2]);
    scores.push_back(key->shape_[key->ndim - 2]);
    if (given.ndim < 2)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'mask' has shape %s; it must have two or more axes, queries and keys last, like the scores of shape %s; unsqueeze(0) makes one row for all queries",
            kAttention, to_string(given.shape()).c_str(), to_string(scores).c_str());
    if (!broadcasts_to(given.shape(), scores))
        fail(YOKE_E_VALUE,
             "%s: argument 'mask' has shape %s; it must broadcast to the shape of the scores, %s",
             kAttention, to_string(given.shape()).c_str(), to_string(scores).c_str());
}

void Attention::share_heads()
{
    const int64_t groups = key->shape_[key->ndim - 3];
    query = split_heads(*query, groups);
    key = ops::unsqueeze(key, -3);
    value = ops::unsqueeze(value, -3);
    if (!mask.present() || mask->ndim < 3) return;
    mask =
        mask->shape_[mask->ndim - 3] == 1 ? ops::unsqueeze(mask, -3) : split_heads(*mask, groups);
}

// Returns the number of elements of dropout's draw: kernels/common/attention.h.
int64_t Attention::draws() const
{
    int64_t heads = 1;
    for (const int64_t size : leading(*query)) heads *= size;
    return heads * size_of(*key, 2) * ((size_of(*query, 2) + 3) / 4 * 4);
}

// Returns dense strides for a result of `shape`, in the order of x's axes: [batch, length, heads, width] in memory
// stays in this order. An expanded x counts as row-major.
Dims dense_strides(const yoke_tensor &x, const Dims &shape)
{
    Dims strides(shape.size(), 0);
    int order[YOKE_MAX_NDIM];
    for (int i = 0; i < x.ndim; ++i) order[i] = i;
    const bool expanded = std::any_of(
        order, order + x.ndim, [&x](int i) { return x.strides_[i] <= 0 && x.shape_[i] > 1; });
    if (!expanded)
        std::stable_sort(order, order + x.ndim - 1,
                         [&x](int i, int j) { return x.strides_[i] > x.strides_[j]; });
    int64_t step = 1;
    for (int i = x.ndim - 1; i >= 0; --i) {
        strides[order[i]] = step;
        step *= std::max<int64_t>(shape[order[i]], 1);
    }
    return strides;
}

void dense_result(Plan &plan, const yoke_tensor &like, const Dims &shape)
{
    plan.result(shape, like.dtype, dense_strides(like, shape).data());
}

double attention_work(const yoke_tensor &query, const yoke_tensor &key, const yoke_tensor &value,
                      bool causal)
{
    const auto widths = static_cast<double>(size_of(query, 1) + size_of(value, 1));
    double pairs = static_cast<double>(size_of(key, 2));
    for (const int64_t size : query.shape().first(static_cast<size_t>(query.ndim - 1)))
        pairs *= static_cast<double>(size);
    return 2 * widths * pairs * (causal ? 0.5 : 1);
}

}  // namespace

Tensor compose_scaled_dot_product_attention(ScaledDotProductAttentionArgs a)
{
    const Attention call(a);
    RandomState at{};
    if (call.dropout > 0) at = reserve_random(call.draws());
    Tensor mask = call.mask;
    if (mask.present() && mask->dtype != YOKE_BOOL) mask = ops::cast(mask, call.query->dtype);
    const Tensor out = ops::attention(call.query, call.key, call.value, mask.get(), call.causal,
                                      call.scale, call.dropout, static_cast<int64_t>(at.seed),
                                      static_cast<int64_t>(at.offset));
    if (!call.shared) return out;
    Dims shape{out->shape()};  // groups and heads of each: the query's heads again
    const int heads = shape.size() - 4;
    shape[heads] *= shape[heads + 1];
    shape.erase(heads + 1);
    return ops::reshape(out, shape);
}

void infer_attention(AttentionArgs a, Plan &plan)
{
    const yoke_tensor &query = a.query(), &value = a.value();
    Dims shape{query.shape()};
    shape[query.ndim - 1] = value.shape_[value.ndim - 1];
    dense_result(plan, query, shape);
    shape.erase(query.ndim - 1);
    plan.result(shape, query.dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32);  // log-sum-exp of each row
    plan.work(attention_work(query, a.key(), value, a.is_causal()));
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor transposed(const Tensor &x)
{
    return ops::transpose(x, -2, -1);
}

// Returns the dropout factors of the probabilities: kernels/common/attention.h gives the places of the draws.
Tensor dropout_factors(AttentionArgs a, yoke_dtype dtype)
{
    const int64_t queries = size_of(a.query(), 2);
    Dims shape{leading(a.query())};
    shape.push_back(size_of(a.key(), 2));
    shape.push_back((queries + 3) / 4 * 4);
    const Tensor drawn = ops::dropout_internal(
        ops::full(shape, int64_t{1}, dtype, a.query().device), a.dropout_p(), a.seed(), a.offset());
    return transposed(ops::slice(drawn, -1, int64_t{0}, queries, int64_t{1}));
}

// Returns the gradient of the scores, by the definition; the mask has the same gradient. A pair of probability 0
// passes no gradient on, whatever its key and value hold.
Tensor scores_gradient(AttentionArgs a, Backward &b)
{
    const yoke_tensor &lse = b.out(1);
    const auto wide = [&lse](const yoke_tensor &x) { return ops::cast(x, lse.dtype); };
    const Tensor mask = wide(*a.mask()), grad = wide(b.grad());
    Tensor scores = ops::matmul(ops::mul(wide(a.query()), a.scale()), transposed(wide(a.key())));
    scores = ops::masked_fill(ops::add(scores, mask), ops::eq(mask, -kInfinity), -kInfinity);
    const Tensor weights = ops::exp(ops::sub(scores, ops::unsqueeze(lse, -1)));
    Tensor slopes = ops::matmul(grad, transposed(wide(a.value())));
    if (a.dropout_p() > 0) slopes = ops::mul(slopes, dropout_factors(a, lse.dtype));
    const int64_t last = -1;
    const Tensor dots = ops::sum(ops::mul(grad, wide(b.out())), IntList(&last, 1), true);
    slopes = ops::mul(weights, ops::sub(slopes, dots));
    return ops::masked_fill(slopes, ops::eq(weights, 0.0), int64_t{0});
}

}  // namespace

void vjp_attention(AttentionArgs a, Backward &b)
{
    if (b.needs(a.kMask))
        b.set(a.kMask,
              ops::cast(sum_to(scores_gradient(a, b), a.mask()->shape()), a.mask()->dtype));
    if (!b.needs(a.kQuery) && !b.needs(a.kKey) && !b.needs(a.kValue)) return;
    const auto gradients = ops::attention_backward(b.grad(), a.query(), a.key(), a.value(),
                                                   a.mask(), b.out(), b.out(1), a.is_causal(),
                                                   a.scale(), a.dropout_p(), a.seed(), a.offset());
    if (b.needs(a.kQuery)) b.set(a.kQuery, gradients[0]);
    if (b.needs(a.kKey)) b.set(a.kKey, gradients[1]);
    if (b.needs(a.kValue)) b.set(a.kValue, gradients[2]);
}

void infer_attention_backward(AttentionBackwardArgs a, Plan &plan)
{
    for (const yoke_tensor *x : {&a.query(), &a.key(), &a.value()})
        dense_result(plan, *x, Dims{x->shape()});
    plan.work(2.5 * attention_work(a.query(), a.key(), a.value(), a.is_causal()));
}

}  // namespace yoke
