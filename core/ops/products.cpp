// products.cpp: products of matrices and vectors by PyTorch's names, and distances between rows: compositions.
#include "core/ops/family.h"
#include "core/ops/scalar.h"

#include <cmath>

namespace yoke {

namespace {

// Two arguments of a product, with their names, and the forms that a message asks for.
struct Factors {
    const char *call;
    const char *first, *second;
    const yoke_tensor &x, &y;
    const char *form_x, *form_y;
};

[[noreturn]] void fail_factors(const Factors &f)
{
    fail(YOKE_E_VALUE, "%s: argument '%s' has shape %s and '%s' %s; they must be %s and %s", f.call,
         f.first, to_string(f.x.shape()).c_str(), f.second, to_string(f.y.shape()).c_str(),
         f.form_x, f.form_y);
}

void check_factors(const Factors &f, int axes_x, int axes_y)
{
    if (f.x.dtype != f.y.dtype)
        fail(YOKE_E_TYPE, "%s: argument '%s' is %s and '%s' is %s; cast one of them first", f.call,
             f.first, name(f.x.dtype), f.second, name(f.y.dtype));
    if (f.x.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: argument '%s' is bool; products take numbers, so cast it first",
             f.call, f.first);
    if (f.x.ndim != axes_x || f.y.ndim != axes_y) fail_factors(f);
    const int64_t inner = f.x.shape_[axes_x - 1], other = f.y.shape_[axes_y == 1 ? 0 : axes_y - 2];
    if (inner != other || (axes_x == 3 && f.x.shape_[0] != f.y.shape_[0])) fail_factors(f);
}

Factors matrices(const char *call, const char *first, const char *second, const yoke_tensor &x,
                 const yoke_tensor &y)
{
    return {call, first, second, x, y, "[n, k]", "[k, m]"};
}

Factors batches(const char *call, const char *first, const char *second, const yoke_tensor &x,
                const yoke_tensor &y)
{
    return {call, first, second, x, y, "[b, n, k]", "[b, k, m]"};
}

void check_factor_of_sum(const char *call, const char *arg, const yoke_arg &value,
                         const yoke_tensor &x)
{
    if (is_floating(x.dtype) || value.kind != YOKE_ARG_FLOAT) return;
    fail(YOKE_E_TYPE, "%s: argument '%s' is %s, but the tensors are %s; give a whole number", call,
         arg, text_of(value).c_str(), name(x.dtype));
}

// Returns x times a number; x itself for 1.
Tensor scaled(const yoke_tensor &x, const yoke_arg &factor)
{
    return scalar_f64(factor) == 1 ? Tensor::share(const_cast<yoke_tensor *>(&x))
                                   : ops::mul(x, factor);
}

// Returns beta * x + alpha * product. If beta is 0, x's values have no effect, and x's gradient is 0.
Tensor sum_of(const Factors &f, const yoke_tensor &x, const yoke_arg &beta, const yoke_arg &alpha)
{
    check_factor_of_sum(f.call, "beta", beta, f.x);
    check_factor_of_sum(f.call, "alpha", alpha, f.x);
    if (x.dtype != f.x.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s and '%s' is %s; cast one of them first", f.call,
             name(x.dtype), f.first, name(f.x.dtype));
    Dims shape(f.x.shape());
    shape[f.x.ndim - 1] = f.y.shape_[f.y.ndim - 1];
    if (!broadcasts_to(x.shape(), shape))
        fail(YOKE_E_VALUE,
             "%s: argument 'x' has shape %s; it must broadcast to the product's shape %s", f.call,
             to_string(x.shape()).c_str(), to_string(shape).c_str());
    const Tensor product = scaled(ops::matmul(f.x, f.y), alpha);
    if (scalar_f64(beta) != 0) return ops::add(product, scaled(x, beta));
    if (!grad_enabled() || !x.requires_grad()) return product;
    const Tensor everywhere = ops::ones({}, YOKE_BOOL, x.device);
    return ops::add(product, ops::masked_fill(x, everywhere, int64_t{0}));
}

// ---- Distances of rows --------------------------------------------------------------------------------------

// Arguments of cdist, broadcast over all axes but the last two.
struct Distances {
    Tensor x, y;  // [..., n, k], [..., m, k]
    double p;

    int64_t rows_x() const { return x->shape_[x->ndim - 2]; }
    int64_t rows_y() const { return y->shape_[y->ndim - 2]; }
    int64_t width() const { return x->shape_[x->ndim - 1]; }
};

// Returns whether distances of order 2 come from a matrix product, for rows of such a number.
bool takes_product(std::string_view mode, int64_t n, int64_t m)
{
    constexpr int64_t kFew = 25;
    if (mode == "use_mm_for_euclid_dist_if_necessary") return n > kFew || m > kFew;
    if (mode == "use_mm_for_euclid_dist") return true;
    if (mode == "donot_use_mm_for_euclid_dist") return false;
    fail(
        YOKE_E_VALUE,
        "cdist: argument 'compute_mode' is \"%s\"; it must be \"use_mm_for_euclid_dist_if_necessary\", \"use_mm_for_euclid_dist\" or \"donot_use_mm_for_euclid_dist\"",
        std::string(mode).c_str());
}

Tensor squares_of_rows(const Tensor &x)
{
    const int64_t last = -1;
    return ops::sum(ops::mul(x, x), IntList(&last, 1), true);
}

// Returns sqrt(|x|^2 + |y|^2 - 2 x y). The gradient is 0 where the distance is 0.
Tensor distances_by_product(const Distances &d)
{
    const Tensor squares =
        ops::add(squares_of_rows(d.x), ops::transpose(squares_of_rows(d.y), -2, -1));
    const Tensor products = ops::matmul(d.x, ops::transpose(d.y, -2, -1));
    const Tensor squared = ops::sub(squares, ops::mul(products, int64_t{2}));
    const Tensor zero = ops::le(squared, int64_t{0});
    return ops::masked_fill(ops::sqrt(ops::masked_fill(squared, zero, int64_t{1})), zero,
                            int64_t{0});
}

Tensor distances_by_difference(const Distances &d, const Tensor &x)
{
    const int64_t last = -1;
    const Tensor differences = ops::sub(ops::unsqueeze(x, -2), ops::unsqueeze(d.y, -3));
    return ops::norm(differences, d.p, IntList(&last, 1));
}

// Returns the distances of rows without elements: zeros, which depend on x and y.
Tensor distances_of_nothing(const Distances &d)
{
    const int64_t last = -1;
    return ops::sum(ops::sub(ops::unsqueeze(d.x, -2), ops::unsqueeze(d.y, -3)), IntList(&last, 1));
}

// Returns the norms of all differences, for so many rows of x at once that the differences do not fill the memory.
Tensor distances_by_blocks(const Distances &d)
{
    constexpr int64_t kMost = int64_t{1} << 24;
    const int64_t n = d.rows_x(), of_row = d.x->numel / std::max<int64_t>(n, 1) * d.rows_y(),
                  block = std::max<int64_t>(1, kMost / std::max<int64_t>(of_row, 1));
    if (block >= n) return distances_by_difference(d, d.x);
    std::vector<Tensor> parts;
    for (int64_t first = 0; first < n; first += block)
        parts.push_back(
            distances_by_difference(d, ops::slice(d.x, -2, first, std::min(first + block, n))));
    std::vector<yoke_tensor *> list;
    for (const Tensor &part : parts) list.push_back(part.get());
    return ops::cat({list.data(), list.size()}, -2);
}

void check_distances(CdistArgs a)
{
    const yoke_tensor &x = a.x(), &y = a.y();
    check_computable(x, "cdist", "x");
    check_computable(y, "cdist", "y");
    if (x.ndim < 2 || y.ndim < 2 || x.shape_[x.ndim - 1] != y.shape_[y.ndim - 1])
        fail(
            YOKE_E_VALUE,
            "cdist: argument 'x' has shape %s and 'y' %s; they must be [..., n, k] and [..., m, k]",
            to_string(x.shape()).c_str(), to_string(y.shape()).c_str());
    if (!(a.p() >= 0)) fail(YOKE_E_VALUE, "cdist: argument 'p' is %g; it must be 0 or more", a.p());
}

// Returns the norm along an axis, kept, but at least eps.
Tensor norm_above(const yoke_tensor &x, double p, int64_t axis, double eps)
{
    return ops::clamp(ops::norm(x, p, IntList(&axis, 1), true, x.dtype), Operand(eps));
}

}  // namespace

Tensor compose_mm(MmArgs a)
{
    check_factors(matrices("mm", "x", "y", a.x(), a.y()), 2, 2);
    return ops::matmul(a.x(), a.y());
}

Tensor compose_bmm(BmmArgs a)
{
    check_factors(batches("bmm", "x", "y", a.x(), a.y()), 3, 3);
    return ops::matmul(a.x(), a.y());
}

Tensor compose_mv(MvArgs a)
{
    check_factors({"mv", "x", "y", a.x(), a.y(), "[n, k]", "[k]"}, 2, 1);
    return ops::matmul(a.x(), a.y());
}

Tensor compose_dot(DotArgs a)
{
    check_factors({"dot", "x", "y", a.x(), a.y(), "[n]", "[n]"}, 1, 1);
    return ops::matmul(a.x(), a.y());
}

Tensor compose_addmm(AddmmArgs a)
{
    const Factors factors = matrices("addmm", "mat1", "mat2", a.mat1(), a.mat2());
    check_factors(factors, 2, 2);
    return sum_of(factors, a.x(), a.beta(), a.alpha());
}

Tensor compose_baddbmm(BaddbmmArgs a)
{
    const Factors factors = batches("baddbmm", "batch1", "batch2", a.batch1(), a.batch2());
    check_factors(factors, 3, 3);
    return sum_of(factors, a.x(), a.beta(), a.alpha());
}

Tensor compose_trace(TraceArgs a)
{
    if (a.x().ndim != 2)
        fail(YOKE_E_VALUE, "trace: argument 'x' has shape %s; it must be a matrix, [n, m]",
             to_string(a.x().shape()).c_str());
    const yoke_dtype dtype = is_floating(a.x().dtype) ? a.x().dtype : YOKE_NONE;
    return ops::sum(ops::diagonal(a.x()), std::nullopt, false, dtype);
}

Tensor compose_cdist(CdistArgs a)
{
    check_distances(a);
    const yoke_tensor &x = a.x(), &y = a.y();
    const auto batch = [](const yoke_tensor &t) {
        return t.shape().first(static_cast<size_t>(t.ndim - 2));
    };
    const Dims outer = broadcast(batch(x), batch(y), "cdist");
    const auto whole = [&](const yoke_tensor &t) {
        Dims shape = outer;
        for (const int64_t size : t.shape().last(2)) shape.push_back(size);
        return ops::expand(ops::cast(t, promote(x.dtype, y.dtype)), shape);
    };
    const Distances d{whole(x), whole(y), a.p()};
    const bool by_product = takes_product(a.compute_mode(), d.rows_x(), d.rows_y());
    if (d.width() == 0) return distances_of_nothing(d);
    return a.p() == 2 && by_product ? distances_by_product(d) : distances_by_blocks(d);
}

Tensor compose_normalize(NormalizeArgs a)
{
    check_computable(a.x(), "normalize", "x");
    return ops::div(a.x(), norm_above(a.x(), a.p(), a.axis(), a.eps()));
}

Tensor compose_cosine_similarity(CosineSimilarityArgs a)
{
    check_computable(a.x(), "cosine_similarity", "x");
    check_computable(a.y(), "cosine_similarity", "y");
    const yoke_dtype dtype = promote(a.x().dtype, a.y().dtype);
    const Dims shape = broadcast(a.x().shape(), a.y().shape(), "cosine_similarity");
    const Tensor x = ops::expand(ops::cast(a.x(), dtype), shape),
                 y = ops::expand(ops::cast(a.y(), dtype), shape);
    const int64_t axis = a.axis();
    const Tensor units_x = ops::div(x, norm_above(x, 2, axis, a.eps())),
                 units_y = ops::div(y, norm_above(y, 2, axis, a.eps()));
    return ops::sum(ops::mul(units_x, units_y), IntList(&axis, 1));
}

}  // namespace yoke
