// The default device of threads without a choice of their own: from the configuration, once.
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/config_readers.h"
#include "core/base/immortal.h"
#include "core/base/thread_state.h"
#include "core/device/kinds.h"
#include "core/select/select.h"
#include "core/select/spec.h"

#include <algorithm>

namespace yoke {

namespace {

std::atomic<Device *> process_default{nullptr};
Once default_once;

// Replacement of the default device while a kind is switched off: chosen once, not for each tensor.
struct StandIn {
    Mutex mutex{LockRank::kOther};
    Device *device = nullptr;
    const char *spec = nullptr;  // YOKE_DEVICE at the choice; equal texts have the same address
    uint64_t changes = 0;        // disabled_changes() before the choice
};
StandIn &now = immortal<StandIn>();

// Returns the replacement chosen under the same conditions, or nullptr.
Device *stand_in_for(const char *spec, uint64_t changes)
{
    const std::lock_guard lock(now.mutex);
    return now.spec == spec && now.changes == changes ? now.device : nullptr;
}

Device &stand_in(Device &device, const char *spec, uint64_t changes)
{
    const std::lock_guard lock(now.mutex);
    now.device = &device;
    now.spec = spec;
    now.changes = changes;
    return device;
}

// Error about the value of YOKE_DEVICE, with the value in the message.
class VariableError : public Error {
public:
    VariableError(const Error &error, std::string_view spec)
        : Error(error.status(),
                format("YOKE_DEVICE is '%s': %s", std::string(spec).c_str(), error.what()),
                error.native_code())
    {
    }
};

const bool is_read = [] {
    set_config_reader("YOKE_DEVICE", [](std::string_view text) {
        try {
            parse_spec_of_one(text);
        } catch (const Error &error) {
            throw VariableError(error, text);
        }
    });
    return true;
}();

// Opens the device of the current configuration. Only peeks at the configuration, so the host program may choose
// another device after a failure.
Device &open_configured()
{
    const char *spec = peek_config("YOKE_DEVICE");
    try {
        return open_device(spec ? spec : "auto");
    } catch (const Error &error) {
        if (!spec) throw;
        throw VariableError(error, spec);
    }
}

// Returns whether a usable kind is switched off. A device found now is then no default for later.
bool lacks_kind()
{
    const std::vector<std::string> kinds = platforms().kinds;
    return std::any_of(kinds.begin(), kinds.end(),
                       [](const std::string &kind) { return is_disabled(kind); });
}

}  // namespace

Device &current_device()
{
    if (Device *device = thread_state().device) return *device;
    Device *known = process_default.load(std::memory_order_acquire);
    if (known && !known->disabled.load(std::memory_order_relaxed)) return *known;
    const uint64_t changes = disabled_changes();
    if (changes > 0) {
        const char *spec = peek_config("YOKE_DEVICE");
        if (Device *device = stand_in_for(spec, changes)) return *device;
        // As long as the default's kind is switched off, or a kind that might have given the default.
        if (known || lacks_kind()) return stand_in(open_configured(), spec, changes);
    }
    // Only one thread opens the default. If two threads leased different devices, one lease would stay unused.
    default_once.run("the default device", [] {
        Device &found = open_configured();
        config("YOKE_DEVICE");
        process_default.store(&found, std::memory_order_release);
    });
    return *process_default.load(std::memory_order_acquire);
}

void set_current_device(Device &device)
{
    check_usable(device);
    thread_state().device = &device;
}

}  // namespace yoke
