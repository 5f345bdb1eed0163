#include "core/base/pool.h"

#include "core/base/error.h"

#include <cstdlib>

namespace yoke {

void *detail::pool_refill(size_t size_class)
{
    const size_t bytes = (size_class + 1) * PoolCache::kGranularity;
    void *block = malloc(bytes);
    if (!block) fail(YOKE_E_OOM, "no host memory for an object of %zu bytes", bytes);
    return block;
}

void detail::pool_give_back(void *block) noexcept
{
    free(block);
}

void PoolCache::clear() noexcept
{
    for (size_t i = 0; i < kClasses; ++i) {
        while (void *block = head[i]) {
            memcpy(&head[i], block, sizeof(void *));
            free(block);
        }
        bytes[i] = 0;
    }
}

}  // namespace yoke
