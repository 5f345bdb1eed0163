// Plans of cuBLASLt, found by their key: descriptors and algorithm are chosen once.
//
// Contract
//  * A plan is plain memory and is copied out of the cache. So a caller may set its own pointers in the copy while
//    other threads use or replace the plan. The copy takes the cache's lock, for some tens of nanoseconds.
#pragma once

#include <cstdint>
#include <mutex>

#include "kernels/cuda/host/cublaslt_plan.h"

namespace yoke::cuda {

class PlanCache {
public:
    bool find(const PlanKey &key, Plan *plan);
    // Puts a plan into the cache. A full set drops the least recently used plan. A tuned plan replaces an untuned
    // plan of the same product.
    void put(const Plan &plan);

private:
    static constexpr int kSets = 256, kWays = 4;
    Plan *set_of(const PlanKey &key);

    std::mutex mutex_;
    uint64_t clock_ = 0;
    Plan plans_[kSets][kWays] = {};
};

}  // namespace yoke::cuda
