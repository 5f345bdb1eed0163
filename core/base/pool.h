// pool.h: memory for the small objects of the hot path (tensors, storages, tape nodes).
//
// Each thread keeps short free lists by size class, so that making and dropping a tensor costs neither a lock nor a call
// to malloc. A block may be freed by another thread than took it. What a thread holds goes back to malloc when it ends.
#pragma once

#include <cstddef>

namespace yoke
{

// Uninitialised memory of at least `bytes`, aligned to 16. Raises YOKE_E_OOM.
void *pool_alloc(size_t bytes);

// Returns a block; `bytes` is what pool_alloc was given.
void pool_free(void *block, size_t bytes) noexcept;

// The free lists of one thread; a member of ThreadState.
struct PoolCache {
    static constexpr size_t kGranularity = 64;
    static constexpr size_t kClasses = 16; // up to 1 KiB
    static constexpr unsigned kMaxPerClass = 256;
    void *head[kClasses];
    unsigned count[kClasses];
    void clear() noexcept;
};

} // namespace yoke
