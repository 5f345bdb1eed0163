#include "core/base/log.h"

#include "core/base/config.h"
#include "core/base/immortal.h"
#include "core/base/locale.h"
#include "core/base/refcount.h"

#include <cstdarg>
#include <cstdio>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

namespace {

// Callback of the log. A caller holds a reference, so drop waits for the last call.
class Sink final : public RefCounted {
public:
    Sink(int64_t id, LogFn fn, void *user) : id_(id), fn_(fn), user_(user) {}
    ~Sink() override
    {
        if (drop_) drop_(user_);
    }
    int64_t id() const { return id_; }
    // Takes ownership of `user`. The caller owns `user` before, so a sink that could not be added drops nothing.
    void own(yoke_drop_fn drop) { drop_ = drop; }
    void say(LogLevel level, const char *message) const
    {
        if (fn_) fn_(user_, static_cast<int32_t>(level), message);
    }

private:
    int64_t id_;
    LogFn fn_;
    void *user_;
    yoke_drop_fn drop_ = nullptr;
};

// List of all callbacks. A list never changes: a new list replaces it. So a logging thread needs the lock only to
// take a reference, and needs no memory.
struct Sinks final : public RefCounted {
    std::vector<Ref<Sink>> all;
};

constexpr int64_t kHostProgram = 0;  // number of the callback that set_log_callback replaces

struct Log {
    Mutex mutex{LockRank::kLog};
    Ref<Sinks> sinks;
    std::atomic<int64_t> last_id{kHostProgram};
};
Log &the_log = immortal<Log>();

// True if any callback exists; without a callback, logging takes no lock.
std::atomic<bool> listened{false};

LogLevel level_of(std::string_view word)
{
    if (word == "error") return LogLevel::kError;
    if (word == "info") return LogLevel::kInfo;
    return word == "debug" ? LogLevel::kDebug : LogLevel::kWarn;
}

// Returns the level of YOKE_LOG. If the value is unreadable, returns kWarn; the first backend to open raises the
// error.
LogLevel threshold() noexcept
{
    static std::atomic<int32_t> kept{-1};
    const int32_t known = kept.load(std::memory_order_relaxed);
    if (known >= 0) return static_cast<LogLevel>(known);
    const char *text = nullptr;
    try {
        text = try_config("YOKE_LOG");
    } catch (const std::bad_alloc &) {
        return LogLevel::kWarn;  // for this line: the next one asks again
    }
    const LogLevel level = level_of(text ? text : "warn");
    kept.store(static_cast<int32_t>(level), std::memory_order_relaxed);
    return level;
}

// Replaces the callback with the number `id` by `fresh` (null: no callback). Returns whether the number existed. The
// former list goes to `old` and is released outside the lock, since a drop may call any function. The caller holds
// the lock.
bool exchange(int64_t id, const Ref<Sink> &fresh, Ref<Sinks> *old)
{
    Ref<Sinks> next = Ref<Sinks>::adopt(new Sinks);
    bool found = false;
    if (the_log.sinks.present()) {
        for (const Ref<Sink> &sink : the_log.sinks->all) {
            found |= sink->id() == id;
            if (sink->id() != id) next->all.push_back(sink);
        }
    }
    if (fresh.present()) next->all.push_back(fresh);
    listened.store(!next->all.empty());
    *old = std::exchange(the_log.sinks, std::move(next));
    return found;
}

// Returns the callbacks. The caller calls them outside the lock, since a callback may take the lock again.
Ref<Sinks> present_sinks()
{
    const std::lock_guard lock(the_log.mutex);
    return the_log.sinks;
}

void tell_sinks(LogLevel level, const char *message)
{
    const Ref<Sinks> now = present_sinks();
    if (!now.present()) return;
    for (const Ref<Sink> &sink : now->all) sink->say(level, message);
}

constinit thread_local LogLater *log_later = nullptr;  // the outermost one of the thread

}  // namespace

void set_log_callback(LogFn fn, void *user, yoke_drop_fn drop)
{
    Ref<Sink> sink;
    if (fn || drop) sink = Ref<Sink>::adopt(new Sink(kHostProgram, fn, user));
    Ref<Sinks> old;
    const std::lock_guard lock(the_log.mutex);
    exchange(kHostProgram, sink, &old);
    if (sink.present()) sink->own(drop);
}

int64_t add_log_callback(LogFn fn, void *user, yoke_drop_fn drop)
{
    const Ref<Sink> sink = Ref<Sink>::adopt(new Sink(++the_log.last_id, fn, user));
    Ref<Sinks> old;
    const std::lock_guard lock(the_log.mutex);
    exchange(sink->id(), sink, &old);
    sink->own(drop);
    return sink->id();
}

bool remove_log_callback(int64_t id)
{
    Ref<Sinks> old;
    const std::lock_guard lock(the_log.mutex);
    return id != kHostProgram && exchange(id, nullptr, &old);
}

void log(LogLevel level, const char *format, ...) noexcept
{
    if (!listened.load(std::memory_order_acquire) || level > threshold()) return;
    char message[2048];
    va_list args;
    va_start(args, format);
    {
        const PlainLocale plain;  // not for the callbacks
        vsnprintf(message, sizeof message, format, args);
    }
    va_end(args);
    if (log_later) return log_later->keep(level, message);
    tell_sinks(level, message);
}

LogLater::LogLater() noexcept
{
    if (!log_later) log_later = this;
}

LogLater::~LogLater()
{
    if (log_later != this) return;
    log_later = nullptr;
    for (const auto &[level, message] : lines_) tell_sinks(level, message.c_str());
}

void LogLater::keep(LogLevel level, const char *message) noexcept
{
    try {
        lines_.emplace_back(level, message);
    } catch (const std::bad_alloc &) {
        return;
    }
}

}  // namespace yoke
