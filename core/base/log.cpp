#include "core/base/log.h"

#include "core/base/config.h"
#include "core/base/refcount.h"

#include <cstdarg>
#include <cstdio>
#include <new>
#include <string_view>

namespace yoke {

namespace {

// One callback. Whoever calls it holds a reference, so drop waits for the last call.
class Sink final : public RefCounted {
public:
    Sink(LogFn fn, void *user, yoke_drop_fn drop) : fn_(fn), user_(user), drop_(drop) {}
    ~Sink() override
    {
        if (drop_) drop_(user_);
    }
    void say(LogLevel level, const char *message) const
    {
        if (fn_) fn_(user_, static_cast<int32_t>(level), message);
    }

private:
    LogFn fn_;
    void *user_;
    yoke_drop_fn drop_;
};

struct State {
    Mutex mutex{LockRank::kLog};
    Ref<Sink> sink;
};
// Made while the library is loaded, so that no fork finds it half made; never destroyed: threads may
// outlive static destructors.
State &state = *new State;

// So that a library that nobody listens to takes no lock.
std::atomic<bool> listened{false};

// An unreadable YOKE_LOG is raised when the first backend opens; until then it counts as absent.
LogLevel threshold() noexcept
{
    static std::atomic<int32_t> kept{-1};
    const int32_t known = kept.load(std::memory_order_relaxed);
    if (known >= 0) return static_cast<LogLevel>(known);
    const char *text = nullptr;
    try {
        text = config_or_null("YOKE_LOG");
    } catch (const std::bad_alloc &) {
        return LogLevel::kWarn;  // for this line: the next one asks again
    }
    const std::string_view word(text ? text : "warn");
    const LogLevel level = word == "error"   ? LogLevel::kError
                           : word == "info"  ? LogLevel::kInfo
                           : word == "debug" ? LogLevel::kDebug
                                             : LogLevel::kWarn;
    kept.store(static_cast<int32_t>(level), std::memory_order_relaxed);
    return level;
}

}  // namespace

void set_log_callback(LogFn fn, void *user, yoke_drop_fn drop)
{
    Ref<Sink> sink = Ref<Sink>::adopt(new Sink(fn, user, drop));
    {
        const std::lock_guard lock(state.mutex);
        std::swap(state.sink, sink);
        listened.store(fn != nullptr);
    }
    // The old sink leaves here, outside the lock: its drop may call anything.
}

void log(LogLevel level, const char *format, ...) noexcept
{
    if (!listened.load(std::memory_order_acquire) || level > threshold()) return;
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    Ref<Sink> sink;
    {
        const std::lock_guard lock(state.mutex);
        sink = state.sink;
    }
    if (sink.present()) sink->say(level, message);
}

}  // namespace yoke
