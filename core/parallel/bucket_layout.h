// bucket_layout.h: the place of each gradient of a module in the buckets.
#pragma once

#include "core/parallel/compression.h"
#include "core/parallel/wrapped_module.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace yoke {

// Buckets of a module, and the place of each parameter's gradient there. A leaf holds a view of its bucket, so the
// optimizer reads the reduced memory itself.
//
// The layout has no lock. During a backward, only the backward's thread uses the layout. Between backward passes,
// only the thread that wraps or regroups the module uses it.
class BucketLayout {
public:
    BucketLayout(Group &group, const WrappedModule &module, Compression &compression,
                 BucketSizes sizes);
    BucketLayout(const BucketLayout &) = delete;
    BucketLayout &operator=(const BucketLayout &) = delete;

    Group &group() const noexcept { return group_; }
    const WrappedModule &module() const noexcept { return module_; }

    // Lays the buckets out, and expects the gradient of the last parameter first. A group of a single rank has no
    // buckets; only the compression is notified, and keeps its state for another group.
    void lay_out_at_first();
    // Returns whether the buckets await a layout in the order of arrived gradients. The first reduced backward gives
    // this order.
    bool awaits_order() const noexcept { return awaits_order_; }
    void lay_out_again(const std::vector<size_t> &order);
    void clear() noexcept { buckets_.clear(); }

    std::vector<Bucket> &buckets() noexcept { return buckets_; }
    size_t bucket_of(size_t param) const { return places_[param].bucket; }
    const Tensor &view_of(size_t param) const;
    std::vector<std::vector<std::string>> names() const;  // by bucket

    // Raises YOKE_E_STATE if a parameter now has another dtype or device than its view: such a view cannot be its
    // gradient.
    void check_places() const;
    // Copies gradients that lie in a bucket, but not in the leaf's own view, so each leaf has its own gradient. A
    // script may have given a leaf another leaf's view, or its own view with axes in another order. A backward would
    // overwrite such a gradient before reading it.
    void part_gradients();
    // Writes the sum of the leaf's gradient and `gradient` into the view; either may be missing and counts as 0. The
    // leaf then holds the view.
    void store(size_t param, const Tensor &gradient);
    // Gives the leaf its view of the bucket as gradient.
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
