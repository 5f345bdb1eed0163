// config_readers.h: readers of configuration values that need a layer above.
//
// While the library is loaded, such a layer registers the same reader that it uses itself. So check_config() finds
// the errors of a first use, with the same message.
#pragma once

#include <string_view>

namespace yoke {

// Function that raises YOKE_E_VALUE, naming key and value, for an unreadable text; changes no state.
using ConfigReader = void (*)(std::string_view value);

// Sets the reader of an existing key. Called from a single thread at a time, before the first check.
void set_config_reader(std::string_view key, ConfigReader reader) noexcept;

}  // namespace yoke
