#include "core/base/pool.h"

#include "core/base/error.h"
#include "core/base/thread_state.h"

#include <cstdlib>
#include <cstring>

namespace yoke
{

namespace
{

// Sanitizers see every block by itself when nothing is kept.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeep = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kKeep = false;
#else
constexpr bool kKeep = true;
#endif
#else
constexpr bool kKeep = true;
#endif

size_t class_of(size_t bytes)
{
    return (bytes - 1) / PoolCache::kGranularity;
}

} // namespace

void *pool_alloc(size_t bytes)
{
    const size_t size_class = class_of(bytes);
    if (kKeep && size_class < PoolCache::kClasses) {
        PoolCache &cache = thread_state().pool;
        if (void *block = cache.head[size_class]) {
            memcpy(&cache.head[size_class], block, sizeof(void *));
            --cache.count[size_class];
            return block;
        }
    }
    void *block = malloc((size_class + 1) * PoolCache::kGranularity);
    if (!block)
        fail(YOKE_E_OOM, "no host memory for an object of %zu bytes", bytes);
    return block;
}

void pool_free(void *block, size_t bytes) noexcept
{
    const size_t size_class = class_of(bytes);
    if (kKeep && size_class < PoolCache::kClasses) {
        PoolCache &cache = thread_state().pool;
        if (cache.count[size_class] < PoolCache::kMaxPerClass) {
            memcpy(block, &cache.head[size_class], sizeof(void *));
            cache.head[size_class] = block;
            ++cache.count[size_class];
            return;
        }
    }
    free(block);
}

void PoolCache::clear() noexcept
{
    for (size_t i = 0; i < kClasses; ++i) {
        while (void *block = head[i]) {
            memcpy(&head[i], block, sizeof(void *));
            free(block);
        }
        count[i] = 0;
    }
}

} // namespace yoke
