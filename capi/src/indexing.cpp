#include "capi/src/indexing.h"

#include "core/ops/ops.h"

#include <algorithm>
#include <vector>

namespace yoke::capi {

namespace {

bool is_mask(const yoke_index &item)
{
    return item.kind == YOKE_INDEX_TENSOR && item.tensor->dtype == YOKE_BOOL;
}

// Returns whether the item is a tensor or a bool: an int beside such an item is an index as well.
bool is_advanced(const yoke_index &item)
{
    return item.kind == YOKE_INDEX_TENSOR || item.kind == YOKE_INDEX_BOOL;
}

// Returns how many axes of x an item stands for.
int axes_named(const yoke_index &item)
{
    if (is_mask(item)) return item.tensor->ndim;
    return item.kind == YOKE_INDEX_INT || item.kind == YOKE_INDEX_SLICE ||
           item.kind == YOKE_INDEX_TENSOR;
}

// Number of x's axes that the items take.
struct Counts {
    int named = 0;
    int ellipses = 0;
    int advanced = 0;
    int masks = 0;
    int ints = 0;
};

void check_item(const yoke_index &item, size_t i, const char *call)
{
    if (item.kind < YOKE_INDEX_INT || item.kind > YOKE_INDEX_BOOL)
        fail(YOKE_E_VALUE, "%s: item %zu has the unknown kind %d; use YOKE_INDEX_*", call, i,
             item.kind);
    if (item.kind != YOKE_INDEX_TENSOR) return;
    if (!item.tensor) fail(YOKE_E_VALUE, "%s: the tensor of item %zu is NULL", call, i);
    if (is_floating(item.tensor->dtype))
        fail(YOKE_E_TYPE, "%s: item %zu is a tensor of %s; index with integers or a bool mask",
             call, i, name(item.tensor->dtype));
}

// Counts the items by kind. Raises for items that x cannot take.
Counts count_items(const yoke_tensor &x, Items items, const char *call)
{
    Counts counts;
    for (size_t i = 0; i < items.size(); ++i) {
        check_item(items[i], i, call);
        counts.named += axes_named(items[i]);
        counts.ellipses += items[i].kind == YOKE_INDEX_ELLIPSIS;
        counts.advanced += is_advanced(items[i]);
        counts.masks += is_mask(items[i]) && items[i].tensor->ndim > 0;
        counts.ints += items[i].kind == YOKE_INDEX_INT;
        if (counts.ellipses > 1)
            fail(YOKE_E_VALUE, "%s: item %zu is a second ellipsis; give at most one ellipsis", call,
                 i);
    }
    if (counts.named > x.ndim)
        fail(
            YOKE_E_INDEX,
            "%s: %d indices are given, but the tensor %s has %d axes; give at most one index for each axis",
            call, counts.named, describe(x).c_str(), int{x.ndim});
    return counts;
}

// ---- Views -----------------------------------------------------------------------------------------------

int64_t checked_position(const yoke_tensor &x, int axis, int64_t position, const char *call)
{
    const int64_t size = x.shape_[axis];
    if (position < -size || position >= size)
        fail(YOKE_E_INDEX, "%s: index %lld is out of range for axis %d of the tensor %s; %s", call,
             static_cast<long long>(position), axis, describe(x).c_str(),
             size ? format("give %lld to %lld", -static_cast<long long>(size),
                           static_cast<long long>(size - 1))
                        .c_str()
                  : "the axis has no elements");
    return position < 0 ? position + size : position;
}

// Takes a position of an axis and removes the axis.
Tensor take(const yoke_tensor &x, int axis, int64_t position, const char *call)
{
    const int64_t start = checked_position(x, axis, position, call);
    return ops::squeeze(ops::slice(x, axis, start, start + 1), axis);
}

bool is_whole(const yoke_index &item)
{
    const int32_t none = YOKE_INDEX_NO_START | YOKE_INDEX_NO_STOP;
    return (item.flags & none) == none && (item.flags & YOKE_INDEX_NO_STEP || item.step == 1);
}

Tensor cut(const Tensor &x, int axis, const yoke_index &item)
{
    if (is_whole(item)) return x;
    const auto given = [&](int32_t flag, int64_t value) {
        return item.flags & flag ? std::optional<int64_t>() : std::optional<int64_t>(value);
    };
    return ops::slice(x, axis, given(YOKE_INDEX_NO_START, item.start),
                      given(YOKE_INDEX_NO_STOP, item.stop),
                      given(YOKE_INDEX_NO_STEP, item.step).value_or(1));
}

// ---- A whole key -----------------------------------------------------------------------------------------

// Selection of a key: a view, and in the view the places given by integer tensors along some axes.
class Selection {
public:
    // Selects x[items].
    Selection(const yoke_tensor &x, Items items, const char *call);

    // The indexed axes are neighbours from `axis` on, and `indices` have one shape.
    Tensor base;
    std::vector<yoke_tensor *> indices;
    int axis = 0;

private:
    void add(const yoke_index &item);
    void add_tensor(const yoke_tensor &tensor);
    void add_mask(const yoke_tensor &mask);
    void add_truth(const Tensor &places);
    void add_index(Tensor index);
    void meet(bool is_index);
    void gather_axes();
    void broadcast_indices();

    const char *call_;
    int whole_;                 // axes that an ellipsis stands for
    int at_ = 0;                // the next axis of base
    std::vector<Tensor> held_;  // the index tensors
    Dims axes_;                 // axes of base, an entry for each tensor
    int first_ = -1;            // where the first index of any kind stands
    bool ended_ = false;        // something else came after an index …
    bool apart_ = false;        // … and then one more: the indexed axes go to the front
};

Selection::Selection(const yoke_tensor &x, Items items, const char *call)
    : base(Tensor::share(const_cast<yoke_tensor *>(&x))), call_(call)
{
    const Counts counts = count_items(x, items, call);
    whole_ = x.ndim - counts.named;
    for (const yoke_index &item : items) add(item);
    if (held_.empty()) return;
    gather_axes();
    broadcast_indices();
}

void Selection::add(const yoke_index &item)
{
    meet(is_advanced(item) || item.kind == YOKE_INDEX_INT);
    switch (item.kind) {
        case YOKE_INDEX_INT:
            base = take(*base, at_, item.start, call_);
            break;
        case YOKE_INDEX_SLICE:
            base = cut(base, at_++, item);
            break;
        case YOKE_INDEX_NEW_AXIS:
            base = ops::unsqueeze(base, at_++);
            break;
        case YOKE_INDEX_ELLIPSIS:
            at_ += whole_;
            break;
        case YOKE_INDEX_TENSOR:
            add_tensor(*item.tensor);
            break;
        case YOKE_INDEX_BOOL:
            add_truth(ops::zeros(Dims{item.start != 0}, YOKE_I64, base->device));
            break;
    }
}

// Notes an item for NumPy's rule about the indexed axes: they stay in place if all indices, ints among them, stand
// side by side. Else they go to the front.
void Selection::meet(bool is_index)
{
    if (!is_index) {
        ended_ = first_ >= 0;
        return;
    }
    if (first_ < 0) first_ = at_;
    apart_ |= ended_;
}

void Selection::add_index(Tensor index)
{
    held_.push_back(std::move(index));
    axes_.push_back(at_++);
}

void Selection::add_tensor(const yoke_tensor &tensor)
{
    if (tensor.dtype == YOKE_BOOL)
        tensor.ndim ? add_mask(tensor)
                    : add_truth(ops::view(ops::nonzero(ops::unsqueeze(tensor, 0)), Dims{-1}));
    else if (tensor.dtype == YOKE_I64 || tensor.dtype == YOKE_I32)
        add_index(Tensor::share(const_cast<yoke_tensor *>(&tensor)));
    else
        add_index(ops::cast(tensor, YOKE_I64));
}

// Adds a mask of k axes as k integer tensors: the places where the mask is true. Raises YOKE_E_INDEX for a mask of
// another shape than these axes.
void Selection::add_mask(const yoke_tensor &mask)
{
    for (int i = 0; i < mask.ndim; ++i)
        if (mask.shape_[i] != base->shape_[at_ + i])
            fail(
                YOKE_E_INDEX,
                "%s: a mask of shape %s does not fit shape %s from axis %d on: axis %d has %lld elements, and the mask %lld",
                call_, yoke::to_string(mask.shape()).c_str(),
                yoke::to_string(base->shape()).c_str(), at_, at_ + i,
                static_cast<long long>(base->shape_[at_ + i]),
                static_cast<long long>(mask.shape_[i]));
    for (Tensor &column : ops::unbind(ops::nonzero(mask), 1)) add_index(std::move(column));
}

// Adds a new axis of length 1 for True or False alone, named once or not at all.
void Selection::add_truth(const Tensor &places)
{
    base = ops::unsqueeze(base, at_);
    add_index(places);
}

void Selection::gather_axes()
{
    axis = apart_ ? 0 : static_cast<int>(axes_[0]);
    if (!apart_) return;
    Dims order = axes_;
    bool moves = false;
    for (int i = 0; i < base->ndim; ++i) {
        bool is_indexed = false;
        for (const int64_t indexed : axes_) is_indexed |= indexed == i;
        if (!is_indexed) order.push_back(i);
    }
    for (int i = 0; i < order.size(); ++i) moves |= order[i] != i;
    if (moves) base = ops::permute(base, order);
}

void Selection::broadcast_indices()
{
    Dims shape;
    for (const Tensor &index : held_) {
        const Dims before = shape, own{index->shape()};
        const int axes = std::max(before.size(), own.size());
        shape = Dims(axes, 1);
        for (int i = 1; i <= axes; ++i) {
            const int64_t a = i <= before.size() ? before[before.size() - i] : 1;
            const int64_t b = i <= own.size() ? own[own.size() - i] : 1;
            if (a != b && a != 1 && b != 1)
                fail(YOKE_E_INDEX,
                     "%s: the indices have shapes %s and %s; they must broadcast together", call_,
                     yoke::to_string(before).c_str(), yoke::to_string(own).c_str());
            shape[axes - i] = a == 1 ? b : a;
        }
    }
    for (Tensor &index : held_) {
        if (!same(index->shape(), shape)) index = ops::expand(index, shape);
        indices.push_back(index.get());
    }
}

// Removes leading axes of length 1 that the target does not have, as NumPy does.
Tensor fitted(const yoke_tensor &values, int ndim)
{
    Dims shape{values.shape()};
    while (shape.size() > ndim && shape[0] == 1) shape.erase(0);
    if (shape.size() == values.ndim) return Tensor::share(const_cast<yoke_tensor *>(&values));
    return ops::view(values, shape);
}

// Fills x[…] = value if the key has a single mask and no int: no place needs to be looked for. Returns false for any
// other key.
bool fill_by_mask(yoke_tensor &x, Items items, const Counts &counts, const yoke_arg &value)
{
    if (counts.masks != 1 || counts.advanced != 1 || counts.ints != 0) return false;
    Tensor base = Tensor::share(&x);
    const yoke_tensor *mask = nullptr;
    int axis = 0, behind = 0;
    for (const yoke_index &item : items) {
        if (item.kind == YOKE_INDEX_SLICE) base = cut(base, axis++, item);
        if (item.kind == YOKE_INDEX_NEW_AXIS) base = ops::unsqueeze(base, axis++);
        if (item.kind == YOKE_INDEX_ELLIPSIS) axis += x.ndim - counts.named;
        if (!is_mask(item)) continue;
        mask = item.tensor;
        for (int i = 0; i < mask->ndim; ++i, ++axis)
            if (mask->shape_[i] != base->shape_[axis]) return false;
        behind = axis;
    }
    Dims shape{mask->shape()};
    while (behind++ < base->ndim) shape.push_back(1);
    ops::masked_fill_(base, ops::view(*mask, shape), value);
    return true;
}

// Returns whether both are views of the same elements of a base, in the same order.
bool is_view_of_same(const yoke_tensor &a, const yoke_tensor &b)
{
    return a.data == b.data && a.dtype == b.dtype && a.base.present() &&
           a.base.get() == b.base.get() && same(a.shape(), b.shape()) &&
           same(a.strides(), b.strides());
}

}  // namespace

Tensor index(const yoke_tensor &x, Items items, const char *call)
{
    const Selection key(x, items, call);
    if (!key.indices.empty()) return ops::index(key.base, key.indices, key.axis);
    // The result is always a view, so the caller never gets x itself.
    return key.base.get() == &x ? ops::view(x, x.shape()) : key.base;
}

void index_put(yoke_tensor &x, Items items, const yoke_tensor &values, const char *call)
{
    const Selection key(x, items, call);
    if (key.indices.empty()) {
        // x[…] += y has changed the memory already when it assigns the view.
        if (!is_view_of_same(*key.base, values))
            ops::copy_(key.base, fitted(values, key.base->ndim));
        return;
    }
    const int ndim = key.base->ndim - static_cast<int>(key.indices.size()) + key.indices[0]->ndim;
    ops::index_put_(key.base, key.indices, fitted(values, ndim), false, key.axis, true);
}

void index_fill(yoke_tensor &x, Items items, const yoke_arg &value, const char *call)
{
    const Counts counts = count_items(x, items, call);
    if (fill_by_mask(x, items, counts, value)) return;
    if (counts.advanced == 0) {
        const Selection key(x, items, call);
        ops::fill_(key.base, value);
        return;
    }
    index_put(x, items, ops::full({}, value, x.dtype, x.device), call);
}

}  // namespace yoke::capi
