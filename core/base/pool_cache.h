// pool_cache.h: the free lists of a thread for pool.h; a member of ThreadState.
#pragma once

#include <cstddef>

namespace yoke {

struct PoolCache {
    static constexpr size_t kGranularity = 64;
    static constexpr size_t kClasses = 16;  // up to 1 KiB
    // A garbage collector drops tensors by the thousand; the dropped blocks should still be here when the script goes
    // on.
    static constexpr size_t kMaxClassBytes = size_t{1} << 20;

    void *head[kClasses];
    size_t bytes[kClasses];  // held in each list

    void clear() noexcept;
};

}  // namespace yoke
