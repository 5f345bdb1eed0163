// log.h: the one way in which the library says something that is not an error.
//
// In C nothing is printed: hosts set callbacks. Levels are those of YOKE_LOG ("error", "warn",
// "info", "debug"); what lies below the level is not formatted. Callbacks run in the thread that has
// something to say, in the order in which they came, with no lock held.
#pragma once

#include "yoke/types.h"

#include <string>
#include <utility>
#include <vector>

namespace yoke {

enum class LogLevel : int32_t { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };

using LogFn = void (*)(void *user, int32_t level, const char *message);

// Replaces the host program's own callback; the old one's drop runs once, after its last call has
// returned. fn may be null.
void set_log_callback(LogFn fn, void *user, yoke_drop_fn drop);

// One more callback beside all others, so that hosts in one process do not take the log from each other.
// Its number, from 1, which no other ever has; drop runs as above after its removal.
int64_t add_log_callback(LogFn fn, void *user, yoke_drop_fn drop);
// False if there is none of that number.
bool remove_log_callback(int64_t id);

// Never raises; a message is cut at 2 KiB.
__attribute__((format(printf, 2, 3))) void log(LogLevel level, const char *format, ...) noexcept;

// Keeps what its thread logs, and tells it when it ends: for a lock that is held over calls of a backend, since a
// callback may call anything. An inner object leaves the telling to the outer one. A line for which there is no
// memory is lost.
class LogLater {
public:
    LogLater() noexcept;
    ~LogLater();
    LogLater(const LogLater &) = delete;
    LogLater &operator=(const LogLater &) = delete;
    void keep(LogLevel level, const char *message) noexcept;

private:
    std::vector<std::pair<LogLevel, std::string>> lines_;
};

}  // namespace yoke
