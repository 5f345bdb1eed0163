#include "core/memory/survey.h"

#include "core/memory/growth.h"

namespace yoke {

Survey survey_of(const Growth &growth)
{
    Survey survey;
    for (const auto &arena : growth.arenas()) {
        const Pool pool = pool_of(*arena);
        if (arena->pool.present()) survey.graph_bytes += static_cast<int64_t>(arena->mapped);
        arena->with_space([&](Space &space) {
            space.free().each(1, [&](Block &run) {
                const auto bytes = static_cast<int64_t>(run.size);
                ++survey.split[pool].count;
                if (run.extent->is_range)
                    survey.releasable[pool] += growth.chunks().bytes_within(run.address, run.end());
                else if (space.is_idle(*run.extent))
                    survey.releasable[pool] += bytes;
                if (arena->pool.present()) return true;
                survey.free_by_lane[arena->lane] += bytes;
                survey.largest = std::max(survey.largest, bytes);
                return true;
            });
        });
    }
    survey.releasable[kLargePool] += growth.chunks().spare_bytes();
    survey.split[kAllPools] = survey.split[kSmallPool] + survey.split[kLargePool];
    survey.releasable[kAllPools] = survey.releasable[kSmallPool] + survey.releasable[kLargePool];
    return survey;
}

}  // namespace yoke
