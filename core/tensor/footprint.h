// footprint.h: the bytes that a strided view touches, without its tensor, and whether those of two views meet.
//
// The answer is exact where the strides of both nest in one grid, each at least as long as what lies within it. Views
// by slices, steps, transposes and ints of one dense tensor do. For others it is whether their outer bounds meet.
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
