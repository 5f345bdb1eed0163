// From a spec to a device, and which device a thread uses.
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"
#include "core/device/device.h"
#include "core/device/kinds.h"

#include <charconv>

namespace yoke {

namespace {

std::atomic<Device *> process_default{nullptr};

[[noreturn]] void refuse(const std::string &spec, const char *why)
{
    std::string allowed = "auto";
    for (const std::string &kind : known_kinds())
        allowed += ", " + kind + (kind == kHostKind ? "" : ", " + kind + ":N");
    fail(YOKE_E_VALUE, "device spec '%s' %s; use one of %s", spec.c_str(), why, allowed.c_str());
}

struct Skipped {
    Mutex mutex{LockRank::kOther};
    std::vector<std::string> told;
};
// Made while the library is loaded, so that no fork finds it half made; never destroyed.
Skipped &skipped = *new Skipped;

// Says once for each kind why it is not used.
void tell_skipped(const std::string &kind, const char *reason)
{
    {
        const std::lock_guard lock(skipped.mutex);
        for (const std::string &each : skipped.told)
            if (each == kind) return;
        skipped.told.push_back(kind);
    }
    log(is_defect(kind) ? LogLevel::kWarn : LogLevel::kInfo, "device 'auto' does not use %s: %s",
        kind.c_str(), reason);
}

Device &open_auto()
{
    std::string reasons;
    for (const std::string &kind : platforms().kinds) {
        const char *reason = why_unavailable(kind);
        if (!*reason) return *devices_of(kind).front();
        tell_skipped(kind, reason);
        reasons += (reasons.empty() ? "" : "; ") + kind + ": " + reason;
    }
    fail(YOKE_E_UNAVAILABLE, "device spec 'auto': no device can be used: %s", reasons.c_str());
}

Device &open_indexed(const std::string &spec, const std::string &kind, std::string_view digits)
{
    int32_t index = -1;
    const auto [end, problem] = std::from_chars(digits.begin(), digits.end(), index);
    if (problem != std::errc() || end != digits.end() || index < 0)
        refuse(spec, "has no device number behind its colon");
    const std::vector<Device *> &devices = devices_of(kind);
    if (static_cast<size_t>(index) >= devices.size())
        fail(YOKE_E_UNAVAILABLE, "device spec '%s': there is no such device; the last one is %s",
             spec.c_str(), devices.back()->name.c_str());
    return *devices[static_cast<size_t>(index)];
}

}  // namespace

Device &open_device(std::string_view text)
{
    warn_of_late_changes();
    const std::string spec(text);
    if (spec == "auto") {
        if (platforms().named)
            devices_of(platforms().kinds.front());  // raises if any named one fails
        return open_auto();
    }
    const size_t colon = spec.find(':');
    const std::string kind = spec.substr(0, colon);
    if (!is_known_kind(kind)) refuse(spec, "is not understood");
    if (colon == std::string::npos) return *devices_of(kind).front();
    if (kind == kHostKind) refuse(spec, "has a number, but the host is one device");
    return open_indexed(spec, kind, text.substr(colon + 1));
}

Device &current_device()
{
    if (Device *device = thread_state().device) return *device;
    if (Device *device = process_default.load(std::memory_order_acquire)) return *device;
    // Only looked at, so that a host may still choose another after a failure.
    const char *spec = peek_config("YOKE_DEVICE");
    Device *found = nullptr;
    try {
        found = &open_device(spec ? spec : "auto");
    } catch (const Error &error) {
        if (!spec) throw;
        throw Error(error.status(), format("YOKE_DEVICE is '%s': %s", spec, error.what()),
                    error.native_code());
    }
    config("YOKE_DEVICE");
    Device *first = nullptr;
    return process_default.compare_exchange_strong(first, found) ? *found : *first;
}

void set_current_device(Device &device)
{
    check_usable(device);
    thread_state().device = &device;
}

}  // namespace yoke
