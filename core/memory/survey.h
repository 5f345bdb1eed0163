// survey.h: what a walk over a device's arenas finds.
#pragma once

#include "core/device/stream.h"
#include "core/memory/account.h"

#include <algorithm>

namespace yoke {

class Growth;

struct Survey {
    int64_t free_by_lane[kMaxLanes] = {};  // bytes of free blocks, graphs' left out
    int64_t largest = 0;                   // largest of these blocks
    int64_t graph_bytes = 0;               // memory of graphs' arenas
    // By Pool: free blocks; bytes of memory without a used block, in whole segments and chunks.
    Amounts split[3];
    int64_t releasable[3] = {};

    // Returns the free bytes outside the lane with most free bytes.
    int64_t stranded() const noexcept
    {
        int64_t sum = 0, most = 0;
        for (const int64_t bytes : free_by_lane) {
            sum += bytes;
            most = std::max(most, bytes);
        }
        return sum - most;
    }
};

// Returns the figures of all arenas. Looks at every free block. The caller holds Growth's lock.
Survey survey_of(const Growth &growth);

}  // namespace yoke
