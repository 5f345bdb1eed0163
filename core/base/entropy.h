// entropy.h: unpredictable numbers from the system.
#pragma once

#include <cstdint>

namespace yoke {

// Returns a random number from the system. Raises YOKE_E_IO if the system has none.
uint64_t unguessable_number();

}  // namespace yoke
