// footprint.h: the bytes touched by a strided view, without its tensor, and whether two footprints meet.
//
// The answer is exact if the strides of both views nest in a common grid: each stride is at least as long as the data
// within. Views of a dense tensor by slices, steps, transposes and ints nest. For other views, the answer is whether
// the outer bounds meet.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

class Footprint {
public:
    Footprint() = default;  // touches nothing
    explicit Footprint(const yoke_tensor &x) noexcept;
    bool meets(const Footprint &other) const noexcept;

private:
    class Walk;
    // `size` places, `stride` bytes from each other.
    struct Axis {
        int64_t stride, size;
    };
    void add_axes(const yoke_tensor &x) noexcept;
    void join_dense() noexcept;

    ByteRange range_{};
    int axis_count_ = 0;
    Axis axes_[YOKE_MAX_NDIM + 1];  // the longest stride first; the last one counts single bytes
};

}  // namespace yoke
