// config.h: configuration values: set by the host before first use, else read from the environment at first use.
//
// Every key stands in one table (config.cpp) with its check. A value that cannot be read is an error at first use that
// names key, value and what is allowed. A change of a variable after first use has no effect and is warned of once.
#pragma once

#include <cstdint>
#include <string_view>

namespace yoke
{

// The value, or nullptr when it is neither set nor in the environment. Borrowed for the life of the library. Raises
// YOKE_E_VALUE for a key that does not exist or a value that cannot be read.
const char *config(std::string_view key);

// Raises YOKE_E_STATE if the key was used already, YOKE_E_VALUE as above.
void set_config(std::string_view key, std::string_view value);

// Threads for CPU work of the calling thread: its own setting, else YOKE_NUM_THREADS, OMP_NUM_THREADS, the cgroup quota,
// the cores it may run on. 1 in a forked child.
int32_t num_threads();
void set_num_threads(int32_t threads); // this thread's; 0: back to the default

// True in a child of the process in which the library was first used.
bool is_forked_child() noexcept;

} // namespace yoke
