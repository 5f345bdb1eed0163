// buckets.h: groups of gradients that are reduced together, and their memory.
//
// A bucket is a block with a single dtype on a single device. The gradients of its parameters are views of the block,
// so the optimizer reads the reduced memory itself. Each view begins at a cache line, and the gaps stay 0.
#pragma once

#include "core/comm/group.h"

#include <vector>

namespace yoke {

// Parameters of each bucket. Buckets and parameters are in the expected order of complete gradients.
using BucketPlan = std::vector<std::vector<size_t>>;

struct BucketSizes {
    uint64_t first =
        uint64_t{1} << 20;  // bytes per dtype and device; small, so the first bucket starts early
    uint64_t other = uint64_t{25} << 20;
};

// Returns the sizes for a script's MiB; the first bucket has at most 1 MiB. Raises YOKE_E_VALUE unless `mib` is above
// 0, and at most 1e6.
BucketSizes bucket_sizes(double mib);

// Returns the parameters of each bucket. A bucket has a single dtype on a single device, and is closed when a
// parameter fills its size. `order` has each parameter once.
BucketPlan plan_buckets(const std::vector<Tensor> &params, const std::vector<size_t> &order,
                        BucketSizes sizes);

struct Bucket {
    Tensor memory;               // has a single axis
    std::vector<size_t> params;  // parameters of the bucket
    std::vector<Tensor> views;   // by params
};

// Makes the bucket of these parameters, filled with 0; all ranks call this alike. If the group's engine serves the
// device, peers can reach the memory.
Bucket make_bucket(Group &group, const std::vector<Tensor> &params,
                   const std::vector<size_t> &which);

}  // namespace yoke
