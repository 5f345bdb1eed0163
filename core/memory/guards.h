// guards.h: fences behind the last uses of memory by work that Yoke does not see, such as a library's.
#pragma once

#include "core/device/stream.h"

#include <vector>

namespace yoke {

using Guards = std::vector<Ref<Fence>>;

// Adds a fence to a memory's guards, null at first; any thread may. Raises std::bad_alloc.
void add_guard(Guards *&guards, Ref<Fence> fence);
// Forgets the reached fences; returns whether none is left. A fence that cannot be asked counts as not reached.
bool drop_reached(Guards &guards) noexcept;
// Returns the guards of memory without a user, and leaves null in their place. Null means no guards.
Guards take_guards(Guards *&guards) noexcept;
// Waits in the calling thread for all fences. A failure is kept for the next call that waits for the device.
void wait_for(const Guards &guards) noexcept;

}  // namespace yoke
