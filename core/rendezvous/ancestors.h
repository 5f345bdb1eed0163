// ancestors.h: what other processes of this machine were started with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace yoke {

// All variables of a process, as it was started. Nothing where the system does not tell: it is another user's, or has
// ended.
std::optional<std::map<std::string, std::string>> process_variables(int32_t process);

}  // namespace yoke
