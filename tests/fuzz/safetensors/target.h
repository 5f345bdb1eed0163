// target.h: one file of a state, whoever made it, and what must become of it.
//
// It loads or is refused with a CheckpointError that names it, by yoke.load and by yoke.load_info alike. What loads
// saves again, and that loads as the same. Anything else ends the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke::fuzz {

// "" for a file that loads, else why it is refused.
std::string try_file(std::string_view bytes);

}  // namespace yoke::fuzz
