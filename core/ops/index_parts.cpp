// index_parts.cpp: writes by an index along one axis, or by a mask, composed of index_put.
//
// Indices count from 0 on, as in PyTorch. Of several writes to a place the last counts, on every device.
#include "core/ops/index.h"

#include "core/ops/arrange.h"
#include "core/ops/scalar.h"

#include <vector>

namespace yoke {

namespace {

constexpr std::initializer_list<const char *> kWorkers = {"index_put", "index_put_"};

Tensor shared(const yoke_tensor &x)
{
    return Tensor::share(const_cast<yoke_tensor *>(&x));
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
        return named_as(call, kWorkers,
                        [&] { return ops::index_put(x, pointers(), values, adds, axis, false); });
    }
    void put_(yoke_tensor &x, bool adds, const char *call) const
    {
        named_as(call, kWorkers,
                 [&] { ops::index_put_(x, pointers(), values, adds, axis, false); });
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
