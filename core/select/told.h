// told.h: messages of selection that a process says once.
#pragma once

#include <string>

namespace yoke::detail {

// Returns true the first time that it is asked for a text.
bool is_new(const std::string &text);

}  // namespace yoke::detail
