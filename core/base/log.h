// log.h: the one way in which the library says something that is not an error.
//
// In C nothing is printed: a host sets a callback. Levels are those of YOKE_LOG ("error", "warn",
// "info", "debug"); what lies below the level is not formatted. The callback runs in the thread that
// has something to say, with no lock held.
#pragma once

#include "yoke/types.h"

namespace yoke {

enum class LogLevel : int32_t { kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };

using LogFn = void (*)(void *user, int32_t level, const char *message);

// Replaces the callback; the old one's drop runs once, after its last call has returned. fn may be
// null.
void set_log_callback(LogFn fn, void *user, yoke_drop_fn drop);

// Never raises; a message is cut at 2 KiB.
__attribute__((format(printf, 2, 3))) void log(LogLevel level, const char *format, ...) noexcept;

}  // namespace yoke
