// Memory that the machine can still give.
#pragma once

#include <cstdint>

namespace yoke::cpu {

// Returns the bytes of available memory, including file caches that the kernel can reclaim. Returns 0 if the kernel
// does not report a number.
uint64_t available_memory();

}  // namespace yoke::cpu
