// log.h: the only output of the library apart from errors.
//
// The C library prints no text: host programs set callbacks. Levels are those of YOKE_LOG ("error", "warn", "info",
// "debug"); messages below the level are not formatted. Callbacks run in the logging thread, in the order in which
// they were added, with no lock held.
#pragma once

#include "yoke/types.h"

#include <string>
#include <utility>
#include <vector>

namespace yoke {

enum class LogLevel : int32_t { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };

using LogFn = void (*)(void *user, int32_t level, const char *message);

// Replaces the host program's own callback; the old callback's drop runs once, after its last call has returned. fn
// may be null.
void set_log_callback(LogFn fn, void *user, yoke_drop_fn drop);

// Adds a callback beside all others, so host programs in the same process do not take the log from each other.
// Returns the callback's number, from 1, which is never used again. drop runs once, after the removal and the last
// call.
int64_t add_log_callback(LogFn fn, void *user, yoke_drop_fn drop);
// Removes a callback. Returns false if the number is unknown.
bool remove_log_callback(int64_t id);

// Formats a message as printf does and gives it to all callbacks, if YOKE_LOG allows the level. Never raises; a
// message is cut at 2 KiB.
__attribute__((format(printf, 2, 3))) void log(LogLevel level, const char *format, ...) noexcept;

// Scope that keeps the messages of its thread and logs them at its end. Used when a lock is held over calls of a
// backend, since a callback may call any function. An inner object leaves the logging to the outer object. A line is
// lost if there is no memory for the line.
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
