// bucket_layout.h: the place of each gradient of a module in the buckets.
#pragma once

#include "core/parallel/compression.h"
#include "core/parallel/wrapped_module.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace yoke {

// The buckets of a module: which parameter's gradient lies in which bucket, and where. A leaf holds a view of its
// bucket, so that the reduced memory is the gradient that an optimizer reads.
//
// The layout has no lock. The thread of a backward uses the layout, and between two backwards the thread that wraps or
// regroups the module.
class BucketLayout {
public:
    BucketLayout(Group &group, const WrappedModule &module, Compression &compression,
                 BucketSizes sizes);
    BucketLayout(const BucketLayout &) = delete;
    BucketLayout &operator=(const BucketLayout &) = delete;

    Group &group() const noexcept { return group_; }
    const WrappedModule &module() const noexcept { return module_; }

    // Expects the gradient of the last parameter first. In a group of one there are no buckets, and the compression
    // alone is told: the compression keeps its state for another group.
    void lay_out_at_first();
    // Lays out once in the order in which gradients have come. The first backward that is reduced knows the order.
    bool awaits_order() const noexcept { return awaits_order_; }
    void lay_out_again(const std::vector<size_t> &order);
    void clear() noexcept { buckets_.clear(); }

    std::vector<Bucket> &buckets() noexcept { return buckets_; }
    size_t bucket_of(size_t param) const { return places_[param].bucket; }
    const Tensor &view_of(size_t param) const;
    std::vector<std::vector<std::string>> names() const;  // by bucket

    // Raises YOKE_E_STATE for a parameter that has moved: a view of another dtype or device cannot be its gradient.
    void check_places() const;
    // Copies gradients that lie in a bucket, but not in the leaf's own view. A script may have given a leaf the view of
    // another leaf, or its view with axes in another order: a backward would overwrite the gradient before it is read.
    void part_gradients();
    // Writes the leaf's gradient and `gradient`, which may be null, into the view. The leaf then holds the view.
    void store(size_t param, const Tensor &gradient);
    // Lets the leaf hold its view.
    void hand_out(size_t param);

private:
    struct Place {
        size_t bucket = 0, view = 0;
    };
    void lay_out(const BucketPlan &plan);
    bool holds_view(const LeafNode &leaf, const Tensor &view) const;

    Group &group_;
    const WrappedModule &module_;
    Compression &compression_;
    const BucketSizes sizes_;
    std::vector<Bucket> buckets_;
    std::vector<Place> places_;  // by parameter
    bool awaits_order_ = true;
};

}  // namespace yoke
