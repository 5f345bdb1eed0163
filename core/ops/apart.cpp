// apart.cpp: tensors cut along an axis: how many parts there will be, and the parts, which are views.
#include "core/ops/arrange.h"

#include <algorithm>
#include <vector>

namespace yoke {

namespace {

// Way in which split cuts an axis.
struct Cuts {
    int axis;
    int64_t count;
    int64_t each;  // size of all parts, except perhaps the last; 0 if sizes are given per part
};

Cuts cuts_of(SplitArgs a)
{
    const yoke_tensor &x = a.x();
    const int axis = existing_axis(x, a.axis(), "split");
    const IntList sizes = a.size();
    const int64_t length = x.shape_[axis];
    int64_t total = 0;
    for (const int64_t size : sizes)
        if (size < 0 || __builtin_add_overflow(total, size, &total))
            fail(YOKE_E_VALUE, "split: argument 'size' is %s; sizes must be 0 or more",
                 to_string(sizes).c_str());
    const bool even = sizes.size() == 1;
    if (even ? total == 0 && length > 0 : total != length)
        fail(YOKE_E_VALUE,
             "split: argument 'size' is %s, which does not fit axis %d of shape %s; %s",
             to_string(sizes).c_str(), axis, to_string(x.shape()).c_str(),
             even ? "a single size must be 1 or more"
                  : "several sizes must sum to the length of the axis");
    if (!even) return {axis, static_cast<int64_t>(sizes.size()), 0};
    return {axis, length == 0 ? 1 : (length - 1) / total + 1, std::max<int64_t>(total, 1)};
}

}  // namespace

int64_t count_split(SplitArgs a)
{
    return cuts_of(a).count;
}

std::vector<Tensor> compose_split(SplitArgs a)
{
    const yoke_tensor &x = a.x();
    const Cuts cuts = cuts_of(a);
    const int64_t length = x.shape_[cuts.axis];
    std::vector<Tensor> parts;
    if (!cuts.each && cuts.count == 3) {
        for (Tensor &part : ops::split3(x, a.size(), cuts.axis)) parts.push_back(std::move(part));
        return parts;
    }
    int64_t start = 0;
    for (int64_t i = 0; i < cuts.count; ++i) {
        const int64_t size =
            cuts.each ? std::min(cuts.each, length - start) : a.size()[static_cast<size_t>(i)];
        parts.push_back(ops::slice(x, cuts.axis, start, start + size));
        start += size;
    }
    return parts;
}

void infer_split3(Split3Args a, Plan &plan)
{
    const yoke_tensor &x = a.x();
    const int axis = static_cast<int>(a.axis());
    int64_t start = 0;
    for (const int64_t size : a.size()) {
        Dims shape{x.shape()};
        shape[axis] = size;
        plan.view(x, shape, x.strides_, size ? start * x.strides_[axis] : 0);
        start += size;
    }
}

void vjp_split3(Split3Args a, Backward &b)
{
    Tensor parts[3];
    yoke_tensor *list[3];
    for (int i = 0; i < 3; ++i) {
        Dims shape{a.x().shape()};
        shape[static_cast<int>(a.axis())] = a.size()[static_cast<size_t>(i)];
        parts[i] = b.grad(i).present() ? b.grad(i) : ops::zeros(shape, a.x().dtype, a.x().device);
        list[i] = parts[i].get();
    }
    b.set(a.kX, ops::cat(list, a.axis()));
}

namespace {

// Returns the size that chunk gives to split. Raises YOKE_E_VALUE for less than 1 chunk.
int64_t chunk_size(ChunkArgs a, int axis)
{
    if (a.chunks() < 1)
        fail(YOKE_E_VALUE, "chunk: argument 'chunks' is %lld; it must be 1 or more",
             static_cast<long long>(a.chunks()));
    const int64_t length = a.x().shape_[axis];
    return length ? (length - 1) / a.chunks() + 1 : 0;
}

}  // namespace

int64_t count_chunk(ChunkArgs a)
{
    const int axis = existing_axis(a.x(), a.axis(), "chunk");
    const int64_t size = chunk_size(a, axis);
    return size ? (a.x().shape_[axis] - 1) / size + 1 : 1;
}

std::vector<Tensor> compose_chunk(ChunkArgs a)
{
    const int axis = existing_axis(a.x(), a.axis(), "chunk");
    return ops::split(a.x(), Dims{chunk_size(a, axis)}, axis);
}

int64_t count_unbind(UnbindArgs a)
{
    return a.x().shape_[existing_axis(a.x(), a.axis(), "unbind")];
}

std::vector<Tensor> compose_unbind(UnbindArgs a)
{
    const yoke_tensor &x = a.x();
    const int axis = existing_axis(x, a.axis(), "unbind");
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < x.shape_[axis]; ++i)
        parts.push_back(ops::squeeze(ops::slice(x, axis, i, i + 1), axis));
    return parts;
}

// ---- tensor_split and meshgrid ---------------------------------------------------------------------------

namespace {

// Returns the ends of the parts of an axis. An end before the part's start gives an empty part.
std::vector<int64_t> ends_of(TensorSplitArgs a, int axis)
{
    const int64_t length = a.x().shape_[axis];
    std::vector<int64_t> ends;
    const std::optional<IntList> indices = a.indices();
    if (a.sections().has_value() == indices.has_value())
        fail(YOKE_E_VALUE,
             "tensor_split: arguments 'sections' and 'indices' are %s; give one of them",
             a.sections() ? "both given" : "both absent");
    if (indices) {
        for (const int64_t index : *indices)
            ends.push_back(std::clamp<int64_t>(index < 0 ? index + length : index, 0, length));
        ends.push_back(length);
        return ends;
    }
    const int64_t count = *a.sections();
    if (count < 1)
        fail(YOKE_E_VALUE, "tensor_split: argument 'sections' is %lld; it must be 1 or more",
             static_cast<long long>(count));
    int64_t end = 0;
    for (int64_t i = 0; i < count; ++i) {
        end += length / count + (i < length % count);
        ends.push_back(end);
    }
    return ends;
}

}  // namespace

int64_t count_tensor_split(TensorSplitArgs a)
{
    const int axis = existing_axis(a.x(), a.axis(), "tensor_split");
    if (a.sections() && !a.indices() && *a.sections() > 0) return *a.sections();
    return static_cast<int64_t>(ends_of(a, axis).size());
}

std::vector<Tensor> compose_tensor_split(TensorSplitArgs a)
{
    const int axis = existing_axis(a.x(), a.axis(), "tensor_split");
    std::vector<Tensor> parts;
    int64_t start = 0;
    for (const int64_t end : ends_of(a, axis)) {
        parts.push_back(ops::slice(a.x(), axis, start, std::max(start, end)));
        start = end;
    }
    return parts;
}

int64_t count_meshgrid(MeshgridArgs a)
{
    return static_cast<int64_t>(a.tensors().size());
}

std::vector<Tensor> compose_meshgrid(MeshgridArgs a)
{
    const bool swaps = a.indexing() == "xy";
    if (!swaps && a.indexing() != "ij")
        fail(YOKE_E_VALUE, "meshgrid: argument 'indexing' is \"%.*s\"; it must be \"ij\" or \"xy\"",
             static_cast<int>(a.indexing().size()), a.indexing().data());
    if (a.tensors().empty())
        fail(YOKE_E_VALUE,
             "meshgrid: argument 'tensors' is an empty list; give at least one tensor");
    const yoke_tensor &first = *a.tensors()[0];
    Dims shape;
    for (const yoke_tensor *x : a.tensors()) {
        if (x->ndim > 1)
            fail(YOKE_E_VALUE, "meshgrid: tensor %d has shape %s; it must be a vector",
                 shape.size(), to_string(x->shape()).c_str());
        if (x->dtype != first.dtype)
            fail(YOKE_E_TYPE, "meshgrid: tensor %d is %s and tensor 0 %s; cast one of them first",
                 shape.size(), name(x->dtype), name(first.dtype));
        shape.push_back(x->numel);
    }
    std::vector<Tensor> grids;
    for (int i = 0; i < shape.size(); ++i) {
        Dims alone(shape.size(), 1);
        alone[i] = shape[i];
        const Tensor grid =
            ops::expand(ops::reshape(*a.tensors()[static_cast<size_t>(i)], alone), shape);
        grids.push_back(swaps && shape.size() > 1 ? ops::transpose(grid, 0, 1) : grid);
    }
    return grids;
}

}  // namespace yoke
