#include "capi/src/indexing.h"

#include "core/ops/ops.h"

namespace yoke::capi {

namespace {

// What the items ask of x's axes in all; raises for items that no tensor could take.
struct Counts {
    int named = 0;  // axes of x that an int or a slice stands for
    bool ellipsis = false;
};

Counts count_items(std::span<const yoke_index> items, const char *call)
{
    Counts counts;
    for (size_t i = 0; i < items.size(); ++i) {
        const int32_t kind = items[i].kind;
        if (kind < YOKE_INDEX_INT || kind > YOKE_INDEX_ELLIPSIS)
            fail(YOKE_E_VALUE, "%s: item %zu has the unknown kind %d; use YOKE_INDEX_*", call, i,
                 kind);
        if (kind == YOKE_INDEX_ELLIPSIS && counts.ellipsis)
            fail(YOKE_E_VALUE,
                 "%s: item %zu is a second ellipsis; one at most says which axes are whole", call,
                 i);
        counts.ellipsis |= kind == YOKE_INDEX_ELLIPSIS;
        counts.named += kind == YOKE_INDEX_INT || kind == YOKE_INDEX_SLICE;
    }
    return counts;
}

// One position of an axis; the axis goes.
Tensor take(const yoke_tensor &x, int axis, int64_t position, const char *call)
{
    const int64_t size = x.shape_[axis];
    if (position < -size || position >= size)
        fail(YOKE_E_INDEX,
             "%s: index %lld is out of range for axis %d of the tensor %s; it has %lld elements",
             call, static_cast<long long>(position), axis, describe(x).c_str(),
             static_cast<long long>(size));
    const int64_t start = position < 0 ? position + size : position;
    return ops::squeeze(ops::slice(x, axis, start, start + 1), axis);
}

Tensor cut(const yoke_tensor &x, int axis, const yoke_index &item)
{
    const auto given = [&](int32_t flag, int64_t value) {
        return item.flags & flag ? std::optional<int64_t>() : std::optional<int64_t>(value);
    };
    return ops::slice(x, axis, given(YOKE_INDEX_NO_START, item.start),
                      given(YOKE_INDEX_NO_STOP, item.stop),
                      given(YOKE_INDEX_NO_STEP, item.step).value_or(1));
}

}  // namespace

Tensor basic_index(const yoke_tensor &x, std::span<const yoke_index> items, const char *call)
{
    const Counts counts = count_items(items, call);
    if (counts.named > x.ndim)
        fail(YOKE_E_INDEX, "%s: %d indices for the tensor %s, which has %d axes", call,
             counts.named, describe(x).c_str(), int{x.ndim});
    // A view in any case, so that the caller never gets x itself.
    Tensor result = ops::view(x, x.shape());
    int axis = 0;
    for (const yoke_index &item : items) switch (item.kind) {
            case YOKE_INDEX_INT:
                result = take(*result, axis, item.start, call);
                break;
            case YOKE_INDEX_SLICE:
                result = cut(*result, axis++, item);
                break;
            case YOKE_INDEX_NEW_AXIS:
                result = ops::unsqueeze(*result, axis++);
                break;
            case YOKE_INDEX_ELLIPSIS:
                axis += x.ndim - counts.named;
                break;
        }
    return result;
}

}  // namespace yoke::capi
