#include "kernels/cuda/host/cublaslt_plans.h"

#include <cstring>
#include <type_traits>

namespace yoke::cuda {

static_assert(std::has_unique_object_representations_v<PlanKey>, "hashed and compared as bytes");
static_assert(sizeof(PlanKey) % sizeof(uint64_t) == 0, "hashed in words");

Plan *PlanCache::set_of(const PlanKey &key)
{
    uint64_t words[sizeof(PlanKey) / sizeof(uint64_t)], hash = 0;
    memcpy(words, &key, sizeof words);
    for (const uint64_t word : words) {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return plans_[hash % kSets];
}

bool PlanCache::find(const PlanKey &key, Plan *plan)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    Plan *set = set_of(key);
    for (int way = 0; way < kWays; ++way)
        if (set[way].used && memcmp(&set[way].key, &key, sizeof key) == 0) {
            set[way].used = ++clock_;
            *plan = set[way];
            return true;
        }
    return false;
}

void PlanCache::put(const Plan &plan)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    Plan *set = set_of(plan.key), *oldest = set;
    for (int way = 0; way < kWays; ++way) {
        if (set[way].used && memcmp(&set[way].key, &plan.key, sizeof plan.key) == 0) {
            if (!set[way].untuned || plan.untuned) return;
            oldest = &set[way];
            break;
        }
        if (set[way].used < oldest->used) oldest = &set[way];
    }
    *oldest = plan;
    oldest->used = ++clock_;
}

}  // namespace yoke::cuda
