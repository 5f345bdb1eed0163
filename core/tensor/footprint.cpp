#include "core/tensor/footprint.h"

#include <algorithm>
#include <cstdlib>

namespace yoke {

Footprint::Footprint(const yoke_tensor &x) noexcept : range_(byte_range(x))
{
    if (range_.bytes == 0) return;
    if (x.contiguous) {
        axes_[axis_count_++] = {1, static_cast<int64_t>(range_.bytes)};
        return;
    }
    add_axes(x);
    join_dense();
}

// Adds the axes with more than one place, longest stride first, and an axis for the bytes of an element. `begin` is
// the lowest byte, so no stride is negative.
void Footprint::add_axes(const yoke_tensor &x) noexcept
{
    const auto item = static_cast<int64_t>(item_size(x.dtype));
    for (int d = 0; d < x.ndim; ++d) {
        const int64_t stride = std::abs(x.strides_[d]) * item;
        if (stride && x.shape_[d] > 1) axes_[axis_count_++] = {stride, x.shape_[d]};
    }
    std::sort(axes_, axes_ + axis_count_,
              [](const Axis &a, const Axis &b) { return a.stride > b.stride; });
    axes_[axis_count_++] = {1, item};
}

void Footprint::join_dense() noexcept
{
    int last = axis_count_ - 1;
    for (int i = last; i-- > 0;)
        if (axes_[i].stride == axes_[last].stride * axes_[last].size)
            axes_[last].size *= axes_[i].size;
        else
            axes_[--last] = axes_[i];
    axis_count_ = static_cast<int>(std::copy(axes_ + last, axes_ + axis_count_, axes_) - axes_);
}

// Walk over a footprint, from the longest stride to the shortest.
class Footprint::Walk {
public:
    explicit Walk(const Footprint &of)
        : at_(of.axes_),
          end_(of.axes_ + of.axis_count_),
          now_(*at_),
          length_(static_cast<int64_t>(of.range_.bytes))
    {
    }
    bool has_next() const { return at_ != end_; }
    int64_t stride() const { return has_next() ? now_.stride : 0; }
    int64_t length() const { return length_; }  // in bytes, of what is still ahead

    // Enters the axis with this stride, the longest of both footprints. Returns the number of places of this axis, or
    // 1 if this footprint has no such axis. Cuts a longer axis of a shorter stride in two, if the axis fills whole
    // strides.
    int64_t enter(int64_t stride)
    {
        int64_t size = 1;
        if (now_.stride == stride) {
            size = now_.size;
            next();
        } else if (const int64_t filled = now_.stride * now_.size;
                   filled % stride == 0 && stride % now_.stride == 0) {
            size = filled / stride;
            now_.size = stride / now_.stride;
        }
        length_ -= (size - 1) * stride;
        return size;
    }

private:
    void next()
    {
        if (++at_ != end_) now_ = *at_;
    }

    const Axis *at_, *end_;
    Axis now_;
    int64_t length_;
};

namespace {

struct Place {
    int64_t index, rest;
};

// Computes by how many strides the second footprint lies behind the first, and the rest within a stride. Returns
// false unless both fit into a stride. If they fit, two bytes can be the same only if index and rest agree.
bool find_place(int64_t distance, int64_t stride, int64_t first, int64_t second, Place *place)
{
    int64_t index = distance / stride, rest = distance % stride;
    if (rest < 0) --index, rest += stride;
    const bool fits_behind = std::max(first, rest + second) <= stride;
    const bool fits_before = std::max(first, rest - stride + second) <= rest;
    *place = fits_behind ? Place{index, rest} : Place{index + 1, rest - stride};
    return fits_behind || fits_before;
}

bool are_apart(int64_t distance, int64_t first, int64_t second)
{
    return distance >= first || distance + second <= 0;
}

}  // namespace

bool Footprint::meets(const Footprint &other) const noexcept
{
    if (range_.bytes == 0 || other.range_.bytes == 0) return false;
    Walk one(*this), two(other);
    int64_t distance = other.range_.begin - range_.begin;
    for (;;) {
        if (are_apart(distance, one.length(), two.length())) return false;
        const int64_t stride = std::max(one.stride(), two.stride());
        if (stride == 0) return true;
        const int64_t first = one.enter(stride), second = two.enter(stride);
        Place place;
        if (!find_place(distance, stride, one.length(), two.length(), &place)) return true;
        if (are_apart(place.index, first, second)) return false;
        distance = place.rest;
    }
}

}  // namespace yoke
