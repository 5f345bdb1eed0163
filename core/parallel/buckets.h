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

// Returns the sizes for a script's MiB. Raises YOKE_E_VALUE unless `mib` is above 0.
BucketSizes bucket_sizes(double mib);

// Plans the buckets. A bucket is closed when a parameter fills its size. `order` has each parameter once.
BucketPlan plan_buckets(const std::vector<Tensor> &params, const std::vector<size_t> &order,
                        BucketSizes sizes);

struct Bucket {
    Tensor memory;               // has a single axis
    std::vector<size_t> params;  // parameters of the bucket
    std::vector<Tensor> views;   // by params
};

// Makes a bucket, alike on all ranks, in memory of the group that peers can reach.
Bucket make_bucket(Group &group, const std::vector<Tensor> &params,
                   const std::vector<size_t> &which);

}  // namespace yoke
