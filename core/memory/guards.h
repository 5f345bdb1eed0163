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
// Takes the guards of memory that has no user any more.
Guards take_guards(Guards *&guards) noexcept;
// Waits in the calling thread for all fences. The next call reports a failure.
void wait_for(const Guards &guards) noexcept;

}  // namespace yoke
