// poison.h: reports waiting blocks to AddressSanitizer, so that it finds a use after free in memory still owned by
// Yoke. Has no effect in other builds.
#pragma once

#include "core/device/device.h"

#if defined(__SANITIZE_ADDRESS__)
#define YOKE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define YOKE_POISON 1
#endif
#endif

#ifdef YOKE_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace yoke {

inline void poison([[maybe_unused]] const Device &device, [[maybe_unused]] void *block,
                   [[maybe_unused]] uint64_t bytes) noexcept
{
#ifdef YOKE_POISON
    if (device.host) __asan_poison_memory_region(block, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const Device &device, [[maybe_unused]] void *block,
                     [[maybe_unused]] uint64_t bytes) noexcept
{
#ifdef YOKE_POISON
    if (device.host) __asan_unpoison_memory_region(block, bytes);
#endif
}

}  // namespace yoke
