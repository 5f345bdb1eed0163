// Devices of every kind: opened once with their backend, kept for ever.
#include "core/device/device.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/config.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"
#include "core/device/availability.h"
#include "core/device/capture.h"
#include "core/device/deferred_error.h"
#include "core/device/kinds.h"
#include "core/machine/visibility.h"

#include <algorithm>
#include <memory>

namespace yoke {

namespace {

// Opened kind, whose devices and reason never change afterwards.
struct Kind {
    std::string name;
    Once once;
    std::vector<Device *> devices;
    Availability::Reason reason = Availability::Reason::kNone;  // why there are none
    std::string text;                                           // the reason in words
    int32_t disabled = 0;  // how often it was switched off; under the state's lock
};

struct State {
    Mutex mutex{LockRank::kDevices};
    std::vector<Kind *> kinds;
    std::vector<Device *> devices;     // by ordinal
    std::vector<std::string *> texts;  // on kinds that may not be used, kept for the callers
};
State &state = immortal<State>();
std::atomic<uint64_t> changes{0};  // number of switches off and on

Kind &entry_of(std::string_view name)
{
    const std::lock_guard lock(state.mutex);
    for (Kind *kind : state.kinds)
        if (kind->name == name) return *kind;
    auto kind = std::make_unique<Kind>();
    kind->name = name;
    state.kinds.push_back(kind.get());
    return *kind.release();
}

// Deleter of a device whose kind could not be opened as a whole: the next call tries again.
struct Close {
    void operator()(Device *device) const noexcept
    {
        if (device->handle) device->backend->device_close(device->handle);
        delete device;
    }
};
using OpenDevice = std::unique_ptr<Device, Close>;

OpenDevice open_one(const Kind &kind, const yoke_backend &backend, int32_t index)
{
    const std::string name =
        kind.name == kHostKind ? kind.name : kind.name + ":" + std::to_string(index);
    OpenDevice device(new Device);
    device->backend = &backend;
    device->index = index;
    device->name = name;
    device->host = kind.name == kHostKind;
    device->info.struct_size = sizeof device->info;
    check_backend(backend.device_open(index, &device->handle), ("cannot open " + name).c_str());
    check_backend(backend.device_info(device->handle, &device->info),
                  ("cannot read the properties of " + name).c_str());
    return device;
}

void publish(Kind &kind, std::vector<OpenDevice> devices)
{
    const std::lock_guard lock(state.mutex);
    state.devices.reserve(state.devices.size() + devices.size());  // all or none
    kind.devices.reserve(devices.size());
    for (OpenDevice &device : devices) {
        device->ordinal = static_cast<int32_t>(state.devices.size());
        device->disabled.store(kind.disabled > 0);
        state.devices.push_back(device.get());
        kind.devices.push_back(device.release());
    }
}

void open_devices(Kind &kind, const yoke_backend &backend)
{
    int32_t count = 0;
    check_backend(backend.device_count(&count),
                  ("cannot count the devices of " + kind.name).c_str());
    if (count == 0) {
        char text[1024] = "";
        backend.why_unavailable(text, sizeof text);
        kind.reason = Availability::Reason::kAbsent;
        kind.text = *text ? text : kind.name + " has no devices";
        return;
    }
    std::vector<OpenDevice> devices;
    for (int32_t i = 0; i < count; ++i) devices.push_back(open_one(kind, backend, i));
    publish(kind, std::move(devices));
}

constexpr const char *kForkedReason =
    "this process is a forked child of a process that uses Yoke, and drivers do not survive a fork; use spawn or exec, or fork before the first use";

void open_kind(Kind &kind)
{
    check_config();
    warn_of_misspelt_variables();
    if (kind.name != kHostKind && is_forked_child()) {
        kind.reason = Availability::Reason::kForked;
        kind.text = kForkedReason;
        return;
    }
    if (traits_of(kind.name).keeps_variables) keep_cuda_variables();
    const Backend &backend = backend_of(kind.name);
    if (!backend.table) {
        kind.reason =
            backend.defect ? Availability::Reason::kDefect : Availability::Reason::kAbsent;
        kind.text = backend.reason;
        return;
    }
    try {
        open_devices(kind, *backend.table);
    } catch (const Error &error) {
        // The host's memory may be there the next time.
        if (kind.name == kHostKind && error.status() == YOKE_E_OOM) throw;
        // A failing driver is the reason why there are no devices, not a failure of who asks.
        kind.reason = Availability::Reason::kDefect;
        kind.text = error.what();
    }
}

// Returns the kind, opened at its first use, whatever YOKE_PLATFORMS says. Raises YOKE_E_VALUE for an unknown kind.
const Kind &opened(std::string_view name)
{
    if (!is_known_kind(name)) backend_of(name);  // raises, with the kinds that there are
    Kind &kind = entry_of(name);
    mark_process_used();  // before run(): a forked child must not wait for a missing thread
    kind.once.run(kind.name.c_str(), [&] { open_kind(kind); });
    return kind;
}

bool is_forked_for(std::string_view name)
{
    return name != kHostKind && is_forked_child();
}

// Returns a copy of the text with the life of the library. Equal texts share a copy.
const char *kept(const std::string &text)
{
    const std::lock_guard lock(state.mutex);
    for (const std::string *known : state.texts)
        if (*known == text) return known->c_str();
    auto made = std::make_unique<std::string>(text);
    state.texts.push_back(made.get());
    return made.release()->c_str();
}

}  // namespace

Availability::Availability(Reason reason, const std::string &text)
    : reason_(reason), text_(kept(text))
{
}

Availability Availability::allowed(std::string_view name)
{
    const std::string kind(name);
    if (is_disabled(name)) return {Reason::kDisabled, disabled_text(kind)};
    const Platforms chosen = platforms();
    if (!is_known_kind(name) || chosen.allow(name)) return {};
    return {Reason::kNotNamed,
            format("YOKE_PLATFORMS is '%s' and does not name %s; add this kind there",
                   join(chosen.kinds, ",").c_str(), kind.c_str())};
}

Availability Availability::of(std::string_view name)
{
    if (const Availability decided = allowed(name); !decided) return decided;
    const Kind &kind = opened(name);
    if (is_forked_for(name)) return {Reason::kForked, kForkedReason};
    return {kind.reason, kind.text.c_str()};
}

Availability Availability::known(std::string_view name)
{
    if (const Availability decided = allowed(name); !decided) return decided;
    if (is_forked_for(name)) return {Reason::kForked, kForkedReason};
    const Kind &kind = entry_of(name);
    return kind.once.done() ? Availability(kind.reason, kind.text.c_str()) : Availability();
}

void Availability::require_named()
{
    const Platforms chosen = platforms();
    if (!chosen.named) return;
    for (const std::string &name : chosen.kinds) {
        if (is_disabled(name)) continue;
        const Kind &kind = opened(name);
        if (kind.devices.empty())
            fail(is_forked_child() ? YOKE_E_FORKED : YOKE_E_UNAVAILABLE,
                 "YOKE_PLATFORMS names '%s', which cannot be used: %s", name.c_str(),
                 kind.text.c_str());
    }
}

void Availability::require_named_for_choice()
{
    require_named();
    const Platforms chosen = platforms();
    if (!chosen.named) return;
    for (const std::string &kind : chosen.kinds)
        if (!is_disabled(kind)) return of(kind).require(kind);
}

void Availability::require(std::string_view kind) const
{
    if (reason_ == Reason::kNone) return;
    fail(reason_ == Reason::kForked ? YOKE_E_FORKED : YOKE_E_UNAVAILABLE, "%s cannot be used: %s",
         std::string(kind).c_str(), text_);
}

const std::vector<Device *> &devices_of(std::string_view name)
{
    Availability::require_named();
    Availability::of(name).require(name);
    return opened(name).devices;
}

std::vector<Device *> opened_devices_of(std::string_view name)
{
    const Kind &kind = entry_of(name);
    return kind.once.done() ? kind.devices : std::vector<Device *>();
}

std::string disabled_text(const std::string &kind)
{
    return kind + " is disabled by yoke.disable('" + kind + "'); yoke.enable('" + kind +
           "') enables it again";
}

bool is_disabled(std::string_view name)
{
    const std::lock_guard lock(state.mutex);
    const auto kind = std::ranges::find(state.kinds, name, &Kind::name);
    return kind != state.kinds.end() && (*kind)->disabled > 0;
}

bool count_disabled(std::string_view name, int32_t change)
{
    Kind &kind = entry_of(name);
    const std::lock_guard lock(state.mutex);
    if (kind.disabled + change < 0) return false;
    kind.disabled += change;
    changes.fetch_add(1);
    for (Device *device : kind.devices) device->disabled.store(kind.disabled > 0);
    return true;
}

uint64_t disabled_changes() noexcept
{
    return changes.load();
}

std::vector<Device *> opened_devices()
{
    const std::lock_guard lock(state.mutex);
    return state.devices;
}

Device *find_device(const void *handle) noexcept
{
    const std::lock_guard lock(state.mutex);
    const auto found = std::ranges::find(state.devices, handle, &Device::handle);
    return found == state.devices.end() ? nullptr : *found;
}

void check_not_capturing(const char *call)
{
    if (thread_state().graph) [[unlikely]]
        fail(
            YOKE_E_STATE,
            "%s: a graph is being captured by this thread, but the call waits for the device or moves bytes of the host, which a replay does not repeat; make the call before or after the capture",
            call);
}

void synchronize(Device &device)
{
    check_not_capturing(("synchronize " + device.name).c_str());
    check_usable(device);
    raise_deferred_error(device, Behind::kAll);
    check_backend(wait_for_device(device), ("synchronize " + device.name).c_str());
    raise_deferred_error(device, Behind::kAll);
}

void detail::fail_no_kernel(const Device &device, const char *op_name)
{
    fail(YOKE_E_UNSUPPORTED, "%s has no kernel for %s; move its tensors to a device that has one",
         device.kind(), op_name);
}

void detail::fail_unusable(const Device &device)
{
    if (is_forked_child()) fail(YOKE_E_FORKED, "%s: %s", device.name.c_str(), kForkedReason);
    fail(YOKE_E_UNAVAILABLE, "%s: %s", device.name.c_str(), disabled_text(device.kind()).c_str());
}

}  // namespace yoke
