// told.h: messages of the selection, published once per process.
#pragma once

#include <string>

namespace yoke::detail {

// Returns true at the first call with a text.
bool is_new(const std::string &text);

}  // namespace yoke::detail
