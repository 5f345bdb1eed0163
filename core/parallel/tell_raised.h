// tell_raised.h: end of a group after this rank has raised, because the other ranks wait for this rank.
#pragma once

#include "core/comm/group.h"

namespace yoke {

// Ends the group with the exception now being handled, in this rank's call `call`. Does nothing in a forked child.
void tell_raised(Group &group, const char *call) noexcept;

}  // namespace yoke
