// tell_raised.h: the end of a group whose other ranks wait for a rank that has raised.
#pragma once

#include "core/comm/group.h"

namespace yoke {

// Ends the group with the exception that is being handled, in this rank's call of that name. In a forked child does
// nothing.
void tell_raised(Group &group, const char *call) noexcept;

}  // namespace yoke
