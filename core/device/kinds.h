// kinds.h: what selection needs to know of a kind beyond device.h.
#pragma once

#include <string_view>

namespace yoke {

// True if the kind has no devices because something is broken (a refused module, a failing driver),
// false if there is simply none.
bool is_defect(std::string_view kind);

}  // namespace yoke
