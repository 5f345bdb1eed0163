// Plans of cuBLASLt, found by what a product looks like: descriptors and algorithm are chosen once.
//
// Contract
//  * A plan is plain memory and is copied out of the cache, so that a caller may set its own pointers in it while
//    others use or replace the same plan. The copy takes the cache's lock, for some tens of nanoseconds.
#pragma once

#include <cstdint>
#include <mutex>

#include "kernels/cuda/host/cublaslt_plan.h"

namespace yoke::cuda {

class PlanCache {
public:
    bool find(const PlanKey &key, Plan *plan);
    // In a full set the one that was not used for longest goes. Of the same product a tuned one takes an untuned one's
    // place.
    void put(const Plan &plan);

private:
    static constexpr int kSets = 256, kWays = 4;
    Plan *set_of(const PlanKey &key);

    std::mutex mutex_;
    uint64_t clock_ = 0;
    Plan plans_[kSets][kWays] = {};
};

}  // namespace yoke::cuda
