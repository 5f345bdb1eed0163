// poison.h: tells AddressSanitizer which blocks wait, so that a use after free is seen although the
// memory is still ours. Nothing in other builds.
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
