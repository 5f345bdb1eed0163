// index_parts.cpp: writes by an index along one axis, or by a mask, composed of index_put and scatter_add.
//
// Indices count from 0 on, as in PyTorch. Of several writes to a place the last counts, on every device.
#include "core/ops/index.h"

#include "core/ops/arrange.h"
#include "core/ops/scalar.h"

#include <cstring>
#include <vector>

namespace yoke {

namespace {

// Runs `part`, whose errors begin with the name of the op that does the work, and names `call` in its place.
template <class Part>
auto named(const char *call, const Part &part)
{
    try {
        return part();
    } catch (const Error &error) {
        const std::string text = error.what();
        for (const char *worker : {"index_put", "index_put_", "scatter_add", "scatter_add_"})
            if (text.compare(0, strlen(worker), worker) == 0 &&
                text.compare(strlen(worker), 2, ": ") == 0)
                throw Error(error.status(), call + text.substr(strlen(worker)), error.native_code(),
                            error.device());
        throw;
    }
}

Tensor shared(const yoke_tensor &x)
{
    return Tensor::share(const_cast<yoke_tensor *>(&x));
}

void check_dtype_of_x(const yoke_tensor &x, const yoke_tensor &other, const char *which,
                      const char *call)
{
    if (x.dtype != other.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s and '%s' is %s; cast one of them first", call,
             name(x.dtype), which, name(other.dtype));
}

// Returns a number as a tensor without axes, or the tensor that was given.
Tensor lone_value(const yoke_tensor &x, const yoke_arg &value, const char *call)
{
    check_lone_value(x, value, call);
    return is_scalar(value) ? ops::full({}, value, x.dtype, x.device)
                            : ops::cast(*value.v.tensor, x.dtype);
}

// Values, and the indices of the elements that they go to: the arguments of index_put.
struct Target {
    std::vector<Tensor> indices;
    Tensor values;
    int64_t axis = 0;

    Tensor put(const yoke_tensor &x, bool adds, const char *call) const
    {
        return named(call,
                     [&] { return ops::index_put(x, pointers(), values, adds, axis, false); });
    }
    void put_(yoke_tensor &x, bool adds, const char *call) const
    {
        named(call, [&] { ops::index_put_(x, pointers(), values, adds, axis, false); });
    }

private:
    std::vector<yoke_tensor *> pointers() const
    {
        std::vector<yoke_tensor *> list;
        for (const Tensor &index : indices) list.push_back(index.get());
        return list;
    }
};

// ---- Parts along one axis --------------------------------------------------------------------------------

// Returns the target of parts that a vector names along an axis; the values are still missing.
Target parts_of(const yoke_tensor &x, int64_t axis, const yoke_tensor &index, const char *call)
{
    check_index(index, call, "index");
    if (index.ndim > 1)
        fail(YOKE_E_VALUE, "%s: argument 'index' has shape %s; it must have one axis: reshape it",
             call, to_string(index.shape()).c_str());
    const int along = existing_axis(x, axis, call);
    return {{index.ndim ? shared(index) : ops::unsqueeze(index, 0)}, nullptr, along};
}

// Returns the target of parts that take the parts of `source`.
Target parts_from(const yoke_tensor &x, int64_t axis, const yoke_tensor &index,
                  const yoke_tensor &source, const char *call)
{
    Target target = parts_of(x, axis, index, call);
    check_dtype_of_x(x, source, "source", call);
    Dims wanted{x.shape()};
    wanted[static_cast<int>(target.axis)] = index.numel;
    if (!same(source.shape(), wanted))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'source' has shape %s; for 'x' of shape %s and %lld indices it must have shape %s",
            call, to_string(source.shape()).c_str(), to_string(x.shape()).c_str(),
            static_cast<long long>(index.numel), to_string(wanted).c_str());
    target.values = shared(source);
    return target;
}

// Returns the target of index_add, with source times alpha.
Target parts_to_add(const yoke_tensor &x, int64_t axis, const yoke_tensor &index,
                    const yoke_tensor &source, const yoke_arg &alpha, const char *call)
{
    Target target = parts_from(x, axis, index, source, call);
    if (alpha.kind == YOKE_ARG_FLOAT && !is_floating(x.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'alpha' is %s and 'x' is %s; for this dtype alpha must be a whole number",
            call, text_of(alpha).c_str(), name(x.dtype));
    if (scalar_f64(alpha) != 1) target.values = ops::cast(ops::mul(source, alpha), x.dtype);
    return target;
}

Target parts_to_fill(const yoke_tensor &x, int64_t axis, const yoke_tensor &index,
                     const yoke_arg &value, const char *call)
{
    Target target = parts_of(x, axis, index, call);
    target.values = lone_value(x, value, call);
    return target;
}

}  // namespace

Tensor compose_index_add(IndexAddArgs a)
{
    const char *call = "index_add";
    return parts_to_add(a.x(), a.axis(), a.index(), a.source(), a.alpha(), call)
        .put(a.x(), true, call);
}

void compose_index_add_(IndexAddInplaceArgs a)
{
    const char *call = "index_add_";
    parts_to_add(a.x(), a.axis(), a.index(), a.source(), a.alpha(), call).put_(a.x(), true, call);
}

Tensor compose_index_copy(IndexCopyArgs a)
{
    const char *call = "index_copy";
    return parts_from(a.x(), a.axis(), a.index(), a.source(), call).put(a.x(), false, call);
}

void compose_index_copy_(IndexCopyInplaceArgs a)
{
    const char *call = "index_copy_";
    parts_from(a.x(), a.axis(), a.index(), a.source(), call).put_(a.x(), false, call);
}

Tensor compose_index_fill(IndexFillArgs a)
{
    const char *call = "index_fill";
    return parts_to_fill(a.x(), a.axis(), a.index(), a.value(), call).put(a.x(), false, call);
}

void compose_index_fill_(IndexFillInplaceArgs a)
{
    const char *call = "index_fill_";
    parts_to_fill(a.x(), a.axis(), a.index(), a.value(), call).put_(a.x(), false, call);
}

// ---- scatter ---------------------------------------------------------------------------------------------

namespace {

enum class Reduce { kNone, kAdd, kMultiply };

Reduce reduce_of(std::string_view text, const char *call)
{
    if (text == "none") return Reduce::kNone;
    if (text == "add") return Reduce::kAdd;
    if (text != "multiply")
        fail(YOKE_E_VALUE,
             "%s: argument 'reduce' is \"%.*s\"; it must be \"none\", \"add\" or \"multiply\"",
             call, static_cast<int>(text.size()), text.data());
    return Reduce::kMultiply;
}

// Returns the part of src beside the index, or a number for each element of the index.
Tensor scattered(const yoke_tensor &x, const yoke_tensor &index, const yoke_arg &src,
                 const char *call)
{
    if (is_scalar(src)) {
        check_scalar_fits(src, x.dtype, call, "src");
        return ops::expand(ops::full({}, src, x.dtype, x.device), index.shape());
    }
    const yoke_tensor &given = *src.v.tensor;
    check_dtype_of_x(x, given, "src", call);
    if (given.ndim == 0) return ops::expand(given, index.shape());
    check_index_shape(index, given, "src", -1, call);
    Tensor part = shared(given);
    for (int axis = 0; axis < index.ndim; ++axis)
        if (part->shape_[axis] != index.shape_[axis])
            part = ops::slice(part, axis, 0, index.shape_[axis]);
    return part;
}

// Returns the target of a scatter into an x with axes: an index tensor for each axis of x.
Target scatter_target(const yoke_tensor &x, int axis, const yoke_tensor &index, Tensor values)
{
    Target target;
    target.values = std::move(values);
    for (int i = 0; i < x.ndim; ++i) {
        if (i == axis) {
            target.indices.push_back(shared(index));
            continue;
        }
        Dims beside(x.ndim, 1);
        beside[i] = index.shape_[i];
        const Tensor places =
            ops::arange(int64_t{0}, index.shape_[i], int64_t{1}, YOKE_I64, x.device);
        target.indices.push_back(ops::expand(ops::view(places, beside), index.shape()));
    }
    return target;
}

// Multiplies elements by values, in rounds: the round of an entry is the number of earlier entries of the same place.
Tensor multiplied(const yoke_tensor &x, const Target &target, const char *call)
{
    const int64_t count = target.values->numel;
    Tensor places = ops::zeros(Dims{count}, YOKE_I64, x.device), rounds;
    {
        const NoGrad no_grad;
        for (int i = 0; i < x.ndim; ++i)
            places =
                ops::add(ops::mul(places, x.shape_[i]),
                         ops::cast(ops::reshape(target.indices[static_cast<size_t>(i)], Dims{-1}),
                                   YOKE_I64));
        const auto [sorted, order] = ops::sort(places);
        const Tensor numbers = ops::arange(int64_t{0}, count, int64_t{1}, YOKE_I64, x.device);
        rounds =
            ops::index_copy(places, 0, order, ops::sub(numbers, ops::searchsorted(sorted, sorted)));
    }
    const Tensor values = ops::reshape(target.values, Dims{-1});
    Tensor result = ops::reshape(x, Dims{-1});
    int64_t last = 0;
    copy_to_host(ops::amax(rounds), &last, sizeof last, call);
    for (int64_t round = 0; round <= last; ++round) {
        const Tensor entries = ops::nonzero_tuple(ops::eq(rounds, round))[0];
        const Tensor at = ops::index_select(places, 0, entries);
        result = ops::index_copy(
            result, 0, at,
            ops::mul(ops::index_select(result, 0, at), ops::index_select(values, 0, entries)));
    }
    return ops::reshape(result, x.shape());
}

// Arguments of a scatter, checked; x has axes.
struct Scatter {
    Tensor x, index, values;
    int axis;
    Reduce reduce;

    Scatter(const yoke_tensor &given, int64_t along, const yoke_tensor &places, const yoke_arg &src,
            std::string_view how, const char *call)
        : x(shared(given)), index(shared(places)), reduce(reduce_of(how, call))
    {
        check_index(places, call, "index");
        axis = normalize_axis(along, given.ndim, call);
        check_index_shape(places, given, "x", axis, call);
        values = scattered(given, places, src, call);
        if (given.ndim) return;
        for (Tensor *one : {&x, &index, &values}) *one = ops::unsqueeze(*one, 0);
    }
    Target target() const { return scatter_target(*x, axis, *index, values); }
    // Checks the index too, which the products read without a check.
    Tensor product(const char *call) const
    {
        if (!index->numel) return target().put(x, false, call);
        const Target where = target();
        {
            const NoGrad no_grad;
            Target(where.indices, ops::zeros({}, YOKE_BOOL, x->device))
                .put(ops::zeros(x->shape(), YOKE_BOOL, x->device), false, call);
        }
        return multiplied(*x, where, call);
    }
};

}  // namespace

Tensor compose_scatter(ScatterArgs a)
{
    const char *call = "scatter";
    const Scatter s(a.x(), a.axis(), a.index(), a.src(), a.reduce(), call);
    Tensor result;
    if (s.reduce == Reduce::kMultiply)
        result = s.product(call);
    else if (s.reduce == Reduce::kAdd)
        result = named(call, [&] { return ops::scatter_add(s.x, s.axis, s.index, s.values); });
    else
        result = s.target().put(s.x, false, call);
    return a.x().ndim ? result : ops::view(result, {});
}

void compose_scatter_(ScatterInplaceArgs a)
{
    const char *call = "scatter_";
    const Scatter s(a.x(), a.axis(), a.index(), a.src(), a.reduce(), call);
    yoke_tensor &x = *s.x;
    if (s.reduce == Reduce::kMultiply)
        ops::copy_(x, s.product(call));
    else if (s.reduce == Reduce::kAdd)
        named(call, [&] { ops::scatter_add_(x, s.axis, s.index, s.values); });
    else
        s.target().put_(x, false, call);
}

// ---- Elements along one axis -----------------------------------------------------------------------------

Tensor compose_take_along_dim(TakeAlongDimArgs a)
{
    const char *call = "take_along_dim";
    const yoke_tensor &x = a.x(), &indices = a.indices();
    check_index(indices, call, "indices");
    if (!a.axis())
        return ops::gather(ops::reshape(x, Dims{-1}), 0, ops::reshape(indices, Dims{-1}));
    if (x.ndim != indices.ndim)
        fail(YOKE_E_VALUE,
             "%s: argument 'indices' has shape %s and 'x' %s; both need the same number of axes",
             call, to_string(indices.shape()).c_str(), to_string(x.shape()).c_str());
    const int axis = normalize_axis(*a.axis(), x.ndim, call);
    if (x.ndim == 0) return ops::gather(x, 0, indices);
    Dims of_x{x.shape()}, of_indices{indices.shape()};
    of_x[axis] = of_indices[axis] = 1;
    const Dims common = broadcast(of_x, of_indices, call);
    of_x = of_indices = common;
    of_x[axis] = x.shape_[axis];
    of_indices[axis] = indices.shape_[axis];
    return ops::gather(ops::expand(x, of_x), axis, ops::expand(indices, of_indices));
}

// ---- By masks --------------------------------------------------------------------------------------------

int64_t count_nonzero_tuple(NonzeroTupleArgs a)
{
    return a.x().ndim ? a.x().ndim : 1;
}

std::vector<Tensor> compose_nonzero_tuple(NonzeroTupleArgs a)
{
    return ops::unbind(ops::nonzero(a.x().ndim ? a.x() : *ops::unsqueeze(a.x(), 0)), 1);
}

namespace {

Tensor mask_scattered(const yoke_tensor &x, const yoke_tensor &given, const yoke_tensor &source,
                      const char *call)
{
    check_mask(given, call);
    check_dtype_of_x(x, source, "source", call);
    if (!broadcasts_to(given.shape(), x.shape()))
        fail(YOKE_E_VALUE, "%s: argument 'mask' has shape %s; it must broadcast to shape %s of 'x'",
             call, to_string(given.shape()).c_str(), to_string(x.shape()).c_str());
    const Tensor mask = ops::expand(given, x.shape());
    const Tensor running = ops::cumsum(ops::reshape(mask, Dims{-1}), 0);
    int64_t wanted = 0;
    if (running->numel) copy_to_host(ops::slice(running, 0, -1), &wanted, sizeof wanted, call);
    if (wanted > source.numel)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'source' has %lld elements, but 'mask' is true for %lld; give at least as many",
            call, static_cast<long long>(source.numel), static_cast<long long>(wanted));
    if (wanted == 0) {
        // A write of nothing, which gives source a gradient of zeros.
        const Tensor nothing = ops::slice(ops::reshape(source, Dims{-1}), 0, 0, 0);
        const Target none{{ops::zeros(Dims{0}, YOKE_I64, x.device)}, nothing};
        return ops::reshape(none.put(ops::reshape(x, Dims{-1}), false, call), x.shape());
    }
    const Tensor places = ops::clamp(ops::sub(running, int64_t{1}), Operand(int64_t{0}));
    const Tensor taken = ops::index_select(ops::reshape(source, Dims{-1}), 0, places);
    return ops::where(mask, ops::view(taken, x.shape()), x);
}

}  // namespace

Tensor compose_masked_scatter(MaskedScatterArgs a)
{
    return mask_scattered(a.x(), a.mask(), a.source(), "masked_scatter");
}

void compose_masked_scatter_(MaskedScatterInplaceArgs a)
{
    ops::copy_(a.x(), mask_scattered(a.x(), a.mask(), a.source(), "masked_scatter_"));
}

}  // namespace yoke
