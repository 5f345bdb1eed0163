// remembered.h: a log for tests.
#pragma once

#include <cstdint>
#include <string>

namespace yoke::test {

inline std::string logged;

// Notes a line of the log, "LEVEL MESSAGE": for set_log_callback().
inline void remember(void *, int32_t level, const char *message)
{
    logged += std::to_string(level) + " " + message + "\n";
}

}  // namespace yoke::test
