// What memory the machine can still give.
#pragma once

#include <cstdint>

namespace yoke::cpu {

// In bytes, what the kernel can take back from files it has read included; 0 where it does not tell.
uint64_t available_memory();

}  // namespace yoke::cpu
