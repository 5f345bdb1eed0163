#include "yoke/runtime.h"

#include "capi/src/guard.h"
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/fork.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/script.h"
#include "core/device/stream.h"
#include "core/memory/memory.h"
#include "core/state/writer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <thread>

using namespace yoke;
using namespace yoke::capi;

namespace {

constexpr int kStatusCount = YOKE_E_INTERNAL + 1;
using StatusNames = std::array<std::string, kStatusCount + 1>;

// Returns the names of all statuses for scripts, in fewer letters: "device_lost" for YOKE_E_DEVICE_LOST.
StatusNames short_status_names()
{
    StatusNames names;
    for (int status = 0; status < kStatusCount; ++status) {
        std::string text = status_name(status);
        text.erase(0, status == YOKE_OK ? 5 : 7);
        for (char &c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        names[static_cast<size_t>(status)] = text;
    }
    names[kStatusCount] = "unknown";
    return names;
}

std::string describe_kind(const std::string &kind)
{
    const Backend &backend = backend_of(kind);
    return kind + ": " + (backend.table ? backend.table->build_info() : backend.reason.c_str());
}

std::string make_build_info()
{
#if defined(__clang__)
    std::string text = "Yoke " YOKE_VERSION ", clang " __clang_version__;
#else
    std::string text = "Yoke " YOKE_VERSION ", gcc " __VERSION__;
#endif
    for (const std::string &kind : known_kinds()) text += "\n" + describe_kind(kind);
    return text;
}

// Waits for the device's work, with checks in growing steps up to a millisecond. Raises YOKE_E_TIMEOUT at the
// deadline. If a backend cannot be checked, waits without limit. Work left behind in a forked child is skipped.
void drain(Device &device, std::chrono::steady_clock::time_point deadline, double timeout_s,
           const char *call)
{
    using std::chrono::microseconds;
    if (!device.host && is_forked_child()) return;
    if (!device.backend->stream_query) return synchronize(device);
    for (microseconds pause(20);; pause = std::min(pause * 2, microseconds(1000))) {
        if (is_idle(device)) return;
        if (std::chrono::steady_clock::now() >= deadline)
            fail(
                YOKE_E_TIMEOUT,
                "%s: timed out; work on %s is not done after %g s; wait longer, or find out which call hangs",
                call, device.name.c_str(), timeout_s);
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

const char *yoke_version(void)
{
    return YOKE_VERSION;
}

const char *yoke_build_info(void)
{
    const char *text = guard_value("yoke_build_info", static_cast<const char *>(nullptr), [] {
        // Never destroyed: a host program may print the text while the process ends.
        static std::atomic<std::string *> made{nullptr};
        return make_once(made, [] { return new std::string(make_build_info()); }).c_str();
    });
    return text ? text : last_error()->message;
}

const yoke_error *yoke_last_error(void)
{
    return last_error();
}

const char *yoke_status_name(yoke_status status)
{
    return guard_value("yoke_status_name", "unknown", [&] {
        static std::atomic<StatusNames *> made{nullptr};
        const auto &names = make_once(made, [] { return new StatusNames(short_status_names()); });
        const bool known = status >= 0 && status < kStatusCount;
        return names[static_cast<size_t>(known ? status : kStatusCount)].c_str();
    });
}

yoke_status yoke_config_set(const char *key, const char *value)
{
    constexpr const char *call = "yoke_config_set";
    return guard(call, [&] { set_config(&need(key, call, "key"), value ? value : ""); });
}

yoke_status yoke_config_get(const char *key, const char **value)
{
    constexpr const char *call = "yoke_config_get";
    return guard(call, [&] {
        const char *&place = need_out(value, call, "value");
        place = peek_config(&need(key, call, "key"));
    });
}

yoke_status yoke_log_set_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop)
{
    return guard("yoke_log_set_callback", [&] { set_log_callback(fn, user, drop); });
}

yoke_status yoke_log_add_callback(yoke_log_fn fn, void *user, yoke_drop_fn drop, int64_t *id)
{
    constexpr const char *call = "yoke_log_add_callback";
    return guard(call, [&] {
        int64_t &place = need(id, call, "id");
        if (!fn)
            fail(YOKE_E_VALUE, "%s: argument 'fn' is NULL; a callback is needed", short_name(call));
        place = add_log_callback(fn, user, drop);
    });
}

yoke_status yoke_log_remove_callback(int64_t id)
{
    constexpr const char *call = "yoke_log_remove_callback";
    return guard(call, [&] {
        if (!remove_log_callback(id))
            fail(
                YOKE_E_VALUE,
                "%s: argument 'id' is %lld; it must be a number that yoke_log_add_callback returned and that was not removed",
                short_name(call), static_cast<long long>(id));
    });
}

yoke_status yoke_set_interrupt_hook(yoke_interrupt_fn fn, void *user, yoke_drop_fn drop)
{
    return guard("yoke_set_interrupt_hook", [&] { set_interrupt_hook(fn, user, drop); });
}

yoke_status yoke_set_stack_provider(yoke_stack_fn fn, void *user, yoke_drop_fn drop)
{
    return guard("yoke_set_stack_provider", [&] { set_stack_provider(fn, user, drop); });
}

yoke_status yoke_shutdown(double timeout_s)
{
    constexpr const char *call = "yoke_shutdown";
    return guard(call, [&] {
        if (!(timeout_s >= 0))
            fail(YOKE_E_VALUE, "%s: argument 'timeout_s' is %g; it must be 0 or more seconds",
                 short_name(call), timeout_s);
        const std::chrono::duration<double> patience(std::min(timeout_s, 1e8));
        const auto deadline =
            std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(patience);
        if (!end_saves(std::chrono::duration<double>(patience).count()))
            fail(YOKE_E_TIMEOUT,
                 "%s: timed out; a save is not done after %g s; give a longer timeout",
                 short_name(call), timeout_s);
        for (Device *device : opened_devices())
            drain(*device, deadline, timeout_s, short_name(call));
        for (Device *device : opened_devices())
            if (device->backend->rest) device->backend->rest();
        empty_cache(nullptr);
        set_log_callback(nullptr, nullptr, nullptr);
    });
}
