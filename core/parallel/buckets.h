// buckets.h: which gradients are reduced together, and the memory in which they lie.
//
// A bucket is one block of one dtype on one device. The gradients of its parameters are views of it, so what is reduced
// is what the optimizer reads. Each begins at a cache line; what is between them stays 0.
#pragma once

#include "core/comm/group.h"

#include <vector>

namespace yoke {

// In the order in which they are expected to be complete; each a list of parameters, in theirs.
using BucketPlan = std::vector<std::vector<size_t>>;

struct BucketSizes {
    uint64_t first =
        uint64_t{1} << 20;  // bytes of the first one of a dtype and device: it is under way early
    uint64_t other = uint64_t{25} << 20;
};

// Of a size in MiB, which a script gives. Raises YOKE_E_VALUE unless it is above 0.
BucketSizes bucket_sizes(double mib);

// A bucket is closed with the parameter by which it reaches its size. `order` has each parameter once.
BucketPlan plan_buckets(const std::vector<Tensor> &params, const std::vector<size_t> &order,
                        BucketSizes sizes);

struct Bucket {
    Tensor memory;               // of one axis
    std::vector<size_t> params;  // that lie in it
    std::vector<Tensor> views;   // by params
};

// All ranks make it alike, of the group's memory that peers reach.
Bucket make_bucket(Group &group, const std::vector<Tensor> &params,
                   const std::vector<size_t> &which);

}  // namespace yoke
