// config_readers.h: for values of the configuration that only a layer above can read.
//
// The layer puts its reader here while the library is loaded, the same one that it uses itself. So check_config()
// finds what would fail at first use, and in the same words.
#pragma once

#include <string_view>

namespace yoke {

// Raises YOKE_E_VALUE, naming key and value, for a text that cannot be understood; changes nothing.
using ConfigReader = void (*)(std::string_view value);

// Of a key that exists. One at a time, before the first check.
void set_config_reader(std::string_view key, ConfigReader reader) noexcept;

}  // namespace yoke
