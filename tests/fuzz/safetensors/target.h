// target.h: the test of a single state file from any source.
//
// The file must load, or be refused with a CheckpointError with the file's name, by yoke.load and yoke.load_info
// alike. A loaded state must be saved and load again with equal values. Any other outcome ends the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke::fuzz {

// Returns "" for a file that loads, else the reason for the refusal.
std::string try_file(std::string_view bytes);

}  // namespace yoke::fuzz
