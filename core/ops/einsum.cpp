// einsum.cpp: sums of products by Einstein's notation, composed of views, sums and matrix products; the gradient
// comes from these ops.
//
// Tensors are contracted from left to right. Labels common to two tensors are batches if a later tensor or the result
// needs them; else the product sums over them. NumPy's grammar applies. Without "->", the result has the labels with
// a single occurrence, in alphabetical order, behind the axes of "...". A label that occurs twice in a tensor takes
// the tensor's diagonal.
#include "core/ops/equation.h"
#include "core/ops/family.h"

#include <algorithm>

namespace yoke {

namespace {

using einstein::Equation;
using einstein::has;
using einstein::joined;
using einstein::Label;
using einstein::Labels;
using einstein::Sizes;
using einstein::Term;

// ---- A single tensor -------------------------------------------------------------------------------------

int place_of(const Labels &labels, Label label)
{
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// Returns the term with its axes in the order of `wanted`, in which each label occurs once.
Tensor arranged(const Term &term, const Labels &wanted)
{
    if (term.labels == wanted) return term.x;
    Dims axes;
    for (const Label label : wanted) axes.push_back(place_of(term.labels, label));
    return ops::permute(term.x, axes);
}

// Reduces each repeated label to a single axis: every (n + 1)th element of both axes taken together.
void take_diagonals(Term &term)
{
    for (size_t a = 0; a < term.labels.size(); ++a) {
        const Label label = term.labels[a];
        const auto twin =
            std::find(term.labels.begin() + static_cast<long>(a) + 1, term.labels.end(), label);
        if (twin == term.labels.end()) continue;
        const int second = static_cast<int>(twin - term.labels.begin());
        Dims axes;
        for (int i = 0; i < term.x->ndim; ++i)
            if (i != static_cast<int>(a) && i != second) axes.push_back(i);
        Dims shape;
        for (const int64_t i : axes) shape.push_back(term.x->shape_[i]);
        const int64_t n = term.x->shape_[a];
        shape.push_back(n * n);
        axes.push_back(static_cast<int64_t>(a));
        axes.push_back(second);
        const Tensor flat = ops::reshape(ops::permute(term.x, axes), shape);
        term.x = ops::slice(flat, -1, std::nullopt, std::nullopt, n + 1);
        term.labels.erase(twin);
        term.labels.erase(term.labels.begin() + static_cast<long>(a));
        term.labels.push_back(label);
        a = static_cast<size_t>(-1);  // from the start: axes have moved
    }
}

// Sums over the labels not in `wanted`.
void sum_rest(Term &term, const Labels &wanted)
{
    Dims axes;
    Labels kept;
    for (size_t i = 0; i < term.labels.size(); ++i)
        if (has(wanted, term.labels[i]))
            kept.push_back(term.labels[i]);
        else
            axes.push_back(static_cast<int64_t>(i));
    if (axes.size() == 0) return;
    const yoke_dtype dtype = term.x->dtype;
    const Tensor sum = ops::sum(term.x, IntList(axes));  // int64 for integers
    term.x = is_floating(dtype) ? ops::cast(sum, dtype) : sum;
    term.labels = kept;
}

// ---- Two tensors -----------------------------------------------------------------------------------------

// Both terms, each with the axes [batch..., own..., shared...] and single elements stretched to their label's size.
struct TermPair {
    Labels batch, first, second, shared;
    Tensor a, b;
};

Dims shape_of(const Labels &labels, const Sizes &sizes)
{
    Dims shape;
    for (const Label label : labels) shape.push_back(sizes[label]);
    return shape;
}

Tensor stretched(const Term &term, const Labels &order, const Sizes &sizes)
{
    const Dims shape = shape_of(order, sizes);
    const Tensor x = arranged(term, order);
    return same(x->shape(), shape) ? x : ops::expand(x, shape);
}

TermPair pair_up(const Term &x, const Term &y, const Labels &wanted, const Sizes &sizes)
{
    TermPair pair;
    for (const Label label : x.labels)
        (!has(y.labels, label) ? pair.first
         : has(wanted, label)  ? pair.batch
                               : pair.shared)
            .push_back(label);
    for (const Label label : y.labels)
        if (!has(x.labels, label)) pair.second.push_back(label);
    pair.a = stretched(x, joined(joined(pair.batch, pair.first), pair.shared), sizes);
    pair.b = stretched(y, joined(joined(pair.batch, pair.second), pair.shared), sizes);
    return pair;
}

int64_t product_of(const Labels &labels, const Sizes &sizes)
{
    int64_t product = 1;
    for (const Label label : labels) product *= sizes[label];
    return product;
}

// Reshapes [batch..., own..., shared...] to [batch..., own, shared].
Tensor as_matrix(const Tensor &x, size_t batch, const Labels &own, const Labels &shared,
                 const Sizes &sizes)
{
    if (own.size() == 1 && shared.size() == 1) return x;
    Dims shape{x->shape().first(batch)};
    shape.push_back(product_of(own, sizes));
    shape.push_back(product_of(shared, sizes));
    return ops::reshape(x, shape);
}

// Returns the product of elements, if no label is summed. Each tensor gets a single element where only the other
// tensor has an axis.
Tensor multiply(const TermPair &p)
{
    const size_t batch = p.batch.size();
    Dims a{p.a->shape()}, b{p.b->shape().first(batch)};
    for (size_t i = 0; i < p.second.size(); ++i) a.push_back(1);
    for (size_t i = 0; i < p.first.size(); ++i) b.push_back(1);
    for (const int64_t size : p.b->shape().subspan(batch)) b.push_back(size);
    return ops::mul(ops::reshape(p.a, a), ops::reshape(p.b, b));
}

Term contract(const Term &x, const Term &y, const Labels &wanted, const Sizes &sizes)
{
    TermPair p = pair_up(x, y, wanted, sizes);
    if (p.a->dtype != p.b->dtype) {  // a sum of integers among both
        p.a = ops::cast(p.a, YOKE_I64);
        p.b = ops::cast(p.b, YOKE_I64);
    }
    const Labels labels = joined(joined(p.batch, p.first), p.second);
    if (p.shared.empty()) return {multiply(p), labels};
    const size_t batch = p.batch.size();
    const Tensor a = as_matrix(p.a, batch, p.first, p.shared, sizes);
    const Tensor b = as_matrix(p.b, batch, p.second, p.shared, sizes);
    const Tensor product = ops::matmul(a, ops::transpose(b, -2, -1));
    return {ops::reshape(product, shape_of(labels, sizes)), labels};
}

// Returns the labels of the operands from `next` on, and of the result.
Labels wanted_after(const Equation &equation, size_t next)
{
    Labels labels = equation.result;
    for (size_t i = next; i < equation.terms.size(); ++i)
        labels = joined(std::move(labels), equation.terms[i].labels);
    return labels;
}

void check_tensors(TensorList tensors)
{
    if (tensors.empty())
        fail(YOKE_E_VALUE,
             "einsum: argument 'tensors' is an empty list; give a tensor for each operand");
    for (const yoke_tensor *x : tensors) {
        if (!x)
            fail(YOKE_E_VALUE,
                 "einsum: argument 'tensors' has a missing item; give a tensor in its place");
        if (x->dtype == YOKE_BOOL)
            fail(YOKE_E_TYPE, "einsum: argument 'tensors' has a bool tensor; cast it first");
        if (x->dtype != tensors[0]->dtype)
            fail(YOKE_E_TYPE,
                 "einsum: argument 'tensors' has the dtypes %s and %s; cast one of them first",
                 name(tensors[0]->dtype), name(x->dtype));
    }
}

}  // namespace

Tensor compose_einsum(EinsumArgs a)
{
    check_tensors(a.tensors());
    Equation equation(a.equation(), a.tensors());
    const Sizes sizes(equation.terms, a.equation().data());
    for (Term &term : equation.terms) take_diagonals(term);
    Term sum = equation.terms[0];
    for (size_t next = 1; next < equation.terms.size(); ++next) {
        Term &term = equation.terms[next];
        const Labels later = wanted_after(equation, next + 1);
        const Labels others = joined(later, sum.labels);
        sum_rest(sum, joined(later, term.labels));
        sum_rest(term, others);
        sum = contract(sum, term, later, sizes);
    }
    sum_rest(sum, equation.result);
    return arranged(sum, equation.result);
}

Tensor compose_outer(OuterArgs a)
{
    const yoke_tensor &x = a.x(), &y = a.y();
    if (x.ndim != 1 || y.ndim != 1)
        fail(YOKE_E_VALUE, "outer: argument 'x' has shape %s and 'y' %s; both must have one axis",
             to_string(x.shape()).c_str(), to_string(y.shape()).c_str());
    return ops::mul(ops::unsqueeze(x, 1), y);
}

}  // namespace yoke
