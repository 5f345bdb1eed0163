// ancestors.h: start variables of other processes of this machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace yoke {

// Returns all variables with which the process was started. Returns nullopt if the process belongs to another user or
// has ended.
std::optional<std::map<std::string, std::string>> process_variables(int32_t process);

}  // namespace yoke
