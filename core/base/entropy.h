// entropy.h: unpredictable numbers from the system.
#pragma once

#include <cstdint>

namespace yoke {

// Raises YOKE_E_IO where the system has none.
uint64_t unguessable_number();

}  // namespace yoke
