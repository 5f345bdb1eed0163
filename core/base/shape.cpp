#include "core/base/shape.h"

#include "core/base/text.h"

#include <algorithm>

namespace yoke {

namespace {

void check_ndim(size_t ndim, const char *call)
{
    if (ndim > YOKE_MAX_NDIM)
        fail(YOKE_E_VALUE, "%s: %zu axes; a tensor has at most %d", call, ndim, YOKE_MAX_NDIM);
}

}  // namespace

Dims::Dims(IntList values)
{
    check_ndim(values.size(), "shape");
    count_ = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), values_);
}

void Dims::push_back(int64_t value)
{
    insert(count_, value);
}

void Dims::insert(int position, int64_t value)
{
    check_ndim(static_cast<size_t>(count_) + 1, "shape");
    std::copy_backward(values_ + position, values_ + count_, values_ + count_ + 1);
    values_[position] = value;
    ++count_;
}

void Dims::erase(int position)
{
    std::copy(values_ + position + 1, values_ + count_, values_ + position);
    --count_;
}

std::string to_string(IntList list)
{
    return "[" + joined(list, ", ", [](int64_t each) { return std::to_string(each); }) + "]";
}

bool count_elements(IntList shape, int64_t &numel)
{
    bool overflow = false, empty = false;
    numel = 1;
    for (const int64_t size : shape) {
        empty |= size == 0;
        overflow |= size != 0 && __builtin_mul_overflow(numel, size, &numel);
    }
    // Three spare bits, so that the byte size of the widest dtype fits too.
    overflow |= numel > (INT64_MAX >> 3);
    if (empty) numel = 0;
    return !overflow;
}

int64_t checked_numel(IntList shape, const char *call)
{
    check_ndim(shape.size(), call);
    for (const int64_t size : shape)
        if (size < 0)
            fail(YOKE_E_VALUE, "%s: argument 'shape' is %s; each size must be 0 or more", call,
                 to_string(shape).c_str());
    int64_t numel = 0;
    if (!count_elements(shape, numel))
        fail(YOKE_E_VALUE, "%s: shape %s has more elements than memory can address (%lld at most)",
             call, to_string(shape).c_str(), static_cast<long long>(INT64_MAX >> 3));
    return numel;
}

bool is_contiguous(IntList shape, const int64_t *strides)
{
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (shape[i] == 0) return true;
        if (shape[i] != 1 && strides[i] != step)
            return std::find(shape.begin(), shape.end(), 0) != shape.end();
        step *= shape[i];
    }
    return true;
}

int normalize_axis(int64_t axis, int ndim, const char *call)
{
    const int64_t limit = std::max(ndim, 1);
    if (axis < -limit || axis >= limit)
        fail(YOKE_E_INDEX,
             "%s: axis %lld is out of range for a tensor of %d axes; use %lld to %lld", call,
             static_cast<long long>(axis), ndim, static_cast<long long>(-limit),
             static_cast<long long>(limit - 1));
    return static_cast<int>(axis < 0 ? axis + limit : axis);
}

Dims normalize_axes(const IntList *axes, int ndim, const char *call)
{
    bool chosen[YOKE_MAX_NDIM] = {};
    if (!axes)
        std::fill_n(chosen, ndim, true);
    else
        for (const int64_t axis : *axes) {
            bool &flag = chosen[normalize_axis(axis, ndim, call)];
            if (flag)
                fail(YOKE_E_VALUE, "%s: axis %lld appears twice in %s", call,
                     static_cast<long long>(axis), to_string(*axes).c_str());
            flag = true;
        }
    Dims result;
    for (int i = 0; i < ndim; ++i)
        if (chosen[i]) result.push_back(i);
    return result;
}

Dims broadcast(IntList a, IntList b, const char *call)
{
    const IntList &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
    Dims result{longer};
    const int shift = static_cast<int>(longer.size() - shorter.size());
    for (size_t i = 0; i < shorter.size(); ++i) {
        int64_t &size = result[static_cast<int>(i) + shift];
        if (size == shorter[i] || shorter[i] == 1) continue;
        if (size != 1)
            fail(
                YOKE_E_VALUE,
                "%s: shapes %s and %s do not broadcast: axis %d has %lld and %lld; sizes must be equal or 1",
                call, to_string(a).c_str(), to_string(b).c_str(), static_cast<int>(i) + shift,
                static_cast<long long>(size), static_cast<long long>(shorter[i]));
        size = shorter[i];
    }
    return result;
}

bool broadcasts_to(IntList from, IntList to)
{
    if (from.size() > to.size()) return false;
    const size_t shift = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i)
        if (from[i] != to[i + shift] && from[i] != 1) return false;
    return true;
}

}  // namespace yoke
