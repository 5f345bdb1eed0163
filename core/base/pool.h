// pool.h: memory for the small objects of the hot path (tensors, storages, tape nodes).
//
// Each thread keeps free lists by size class, so making and dropping a tensor needs no lock and no call of malloc. A
// thread may free a block of another thread. At its end, a thread gives its blocks back to malloc.
#pragma once

#include "core/base/thread_state.h"

#include <cstring>

namespace yoke {

namespace detail {
void *pool_refill(size_t size_class);
void pool_give_back(void *block) noexcept;

// Sanitizers see every block separately if the pool keeps none.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoolKeeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kPoolKeeps = false;
#else
inline constexpr bool kPoolKeeps = true;
#endif
#else
inline constexpr bool kPoolKeeps = true;
#endif
}  // namespace detail

// Rounds the size of a block's part up to 16 bytes, so that the next part is aligned as the block is.
constexpr size_t pool_aligned(size_t bytes)
{
    return (bytes + 15) & ~size_t{15};
}

// Returns uninitialised memory of at least `bytes` (not 0), aligned to 16. Raises YOKE_E_OOM.
inline void *pool_alloc(size_t bytes)
{
    const size_t size_class = (bytes - 1) / PoolCache::kGranularity;
    if (detail::kPoolKeeps && size_class < PoolCache::kClasses) [[likely]] {
        PoolCache &cache = thread_state().pool;
        if (void *block = cache.head[size_class]) [[likely]] {
            memcpy(&cache.head[size_class], block, sizeof(void *));
            cache.bytes[size_class] -= (size_class + 1) * PoolCache::kGranularity;
            return block;
        }
    }
    return detail::pool_refill(size_class);
}

// Gives a block back to the pool; `bytes` is the size given to pool_alloc.
inline void pool_free(void *block, size_t bytes) noexcept
{
    const size_t size_class = (bytes - 1) / PoolCache::kGranularity;
    if (detail::kPoolKeeps && size_class < PoolCache::kClasses) [[likely]] {
        ThreadState *state = try_thread_state();
        if (state && state->pool.bytes[size_class] < PoolCache::kMaxClassBytes) [[likely]] {
            PoolCache &cache = state->pool;
            memcpy(block, &cache.head[size_class], sizeof(void *));
            cache.head[size_class] = block;
            cache.bytes[size_class] += (size_class + 1) * PoolCache::kGranularity;
            return;
        }
    }
    detail::pool_give_back(block);
}

}  // namespace yoke
