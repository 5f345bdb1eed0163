// shape.h: sizes and strides as short inline lists, and their arithmetic for every op.
//
// Strides count elements. Every product is checked: a shape whose size overflows int64 is refused.
#pragma once

#include "core/base/error.h"
#include "yoke/types.h"

#include <initializer_list>
#include <span>
#include <string>

namespace yoke {

using IntList = std::span<const int64_t>;

// At most YOKE_MAX_NDIM integers, by value.
class Dims {
public:
    Dims() = default;
    explicit Dims(IntList values);
    Dims(std::initializer_list<int64_t> values) : Dims(IntList(values.begin(), values.size())) {}
    Dims(int ndim, int64_t value) : count_(ndim)
    {
        for (int i = 0; i < ndim; ++i) values_[i] = value;
    }

    int size() const { return count_; }
    int64_t &operator[](int i) { return values_[i]; }
    int64_t operator[](int i) const { return values_[i]; }
    int64_t *data() { return values_; }
    const int64_t *data() const { return values_; }
    const int64_t *begin() const { return values_; }
    const int64_t *end() const { return values_ + count_; }
    void push_back(int64_t value);
    void insert(int position, int64_t value);
    void erase(int position);
    operator IntList() const { return {values_, static_cast<size_t>(count_)}; }

private:
    int count_ = 0;
    int64_t values_[YOKE_MAX_NDIM];
};

inline bool same(IntList a, IntList b)
{
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)  // a call of memcmp takes longer than a shape's few sizes
        if (a[i] != b[i]) return false;
    return true;
}

// Returns a list as text: "[2, 3]".
std::string to_string(IntList list);

// Counts the elements of a shape without negative sizes. Returns false if the shape has more elements than memory can
// address, also beside an axis of size 0: its strides would not fit.
bool count_elements(IntList shape, int64_t &numel);
// Returns the number of elements. Raises YOKE_E_VALUE, naming the call, for a negative size, an overflow, or too many
// axes.
int64_t checked_numel(IntList shape, const char *call);

// Computes row-major strides.
inline void contiguous_strides(IntList shape, int64_t *strides)
{
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = step;
        step *= shape[i] > 1 ? shape[i] : 1;
    }
}
bool is_contiguous(IntList shape, const int64_t *strides);

// Returns an axis counted from 0; negative axes count from the end. Raises YOKE_E_INDEX, naming call, axis and ndim,
// if the axis is out of range. `ndim` 0 admits -1 and 0, as NumPy's scalars do.
int normalize_axis(int64_t axis, int ndim, const char *call);

// Returns axes sorted and counted from 0; an absent list means all axes. Raises YOKE_E_VALUE on repetition, and
// YOKE_E_INDEX if an axis is out of range.
Dims normalize_axes(const IntList *axes, int ndim, const char *call);

// Returns the common shape of two shapes, by NumPy's broadcasting. Raises YOKE_E_VALUE naming call and both shapes.
Dims broadcast(IntList a, IntList b, const char *call);

// Returns whether `from` broadcasts to exactly `to`.
bool broadcasts_to(IntList from, IntList to);

}  // namespace yoke
