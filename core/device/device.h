// device.h: a device as the core sees it: one backend's device and what the core keeps beside it.
//
// Devices are made once, when their backend is first used, and live until the library is unloaded; handles only count.
#pragma once

#include "core/backend/backend.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/refcount.h"

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {
class DeviceMemory;  // core/memory/memory.h
struct StreamTable;  // core/device/stream.cpp
}  // namespace yoke

struct yoke_device final : yoke::RefCounted {
    const yoke_backend *backend = nullptr;
    void *handle = nullptr;  // the backend's own device
    int32_t index = 0;
    int32_t ordinal = 0;  // among all devices of the process
    bool host = false;    // its memory is the host's own; it alone goes on in a forked child
    std::string name;     // "cpu", "cuda:1": what messages and specs call it
    yoke_backend_device_info info{};
    std::atomic<yoke::DeviceMemory *> memory{nullptr};  // made by core/memory at first use
    std::atomic<yoke::StreamTable *> streams{nullptr};  // made at the first use of one
    // Whether there ever was a stream beside the default one: until then no thread need be asked for its own.
    std::atomic<bool> has_side_streams{false};
    std::atomic<bool> disabled{false};  // its kind is switched off
    // Graphs of it that are being captured, by all threads, and waits for the whole of it: see core/device/capture.h.
    std::atomic<int32_t> captures{0}, whole_waits{0};

    mutable std::atomic<bool> loss_told{false};  // the log has it that the device is lost

    const char *kind() const noexcept { return backend->kind; }

protected:
    void destroy() noexcept override {}  // owned by the registry
};

namespace yoke {

using Device = ::yoke_device;

// The devices of a kind, in order; opens its backend. Raises YOKE_E_UNAVAILABLE with the reason where
// it cannot run, YOKE_E_FORKED in a forked child (all kinds but cpu), YOKE_E_VALUE for a kind that is
// not known. If YOKE_PLATFORMS names a kind that fails, every call that needs a device raises that.
const std::vector<Device *> &devices_of(std::string_view kind);

// Switches a kind off and on again; calls count. disable raises YOKE_E_STATE, naming it, while something lives on a
// device of that kind, YOKE_E_VALUE for a kind that is not known and for the host's.
void disable(std::string_view kind);
void enable(std::string_view kind);

// Raises YOKE_E_STATE while the calling thread captures a graph: `call` would wait for the device, or move bytes once
// that every replay would need.
void check_not_capturing(const char *call);

// Waits for all work that was given to the device; lane by lane while a graph of it is captured
// (core/device/capture.h).
void synchronize(Device &device);

// Every device that was opened so far, by ordinal.
std::vector<Device *> opened_devices();

// The device that a backend knows by this handle, or nullptr. Handles are addresses, so no two
// devices of a process share one.
Device *find_device(const void *handle) noexcept;

namespace detail {
[[noreturn]] __attribute__((cold)) void fail_unusable(const Device &device);
[[noreturn]] void fail_no_kernel(const Device &device, const char *op_name);
}  // namespace detail

// Raises YOKE_E_FORKED if the device's driver was left behind by a fork, YOKE_E_UNAVAILABLE if its kind is switched
// off. Whatever gives work to a device passes here first.
inline void check_usable(const Device &device)
{
    if (device.host) return;
    if (is_forked_child() || device.disabled.load(std::memory_order_relaxed)) [[unlikely]]
        detail::fail_unusable(device);
}

// The backend's table entry for a kernel; raises YOKE_E_UNSUPPORTED "<kind> has no kernel for <op>".
inline yoke_kernel_fn kernel_of(const Device &device, int32_t op, const char *op_name)
{
    check_usable(device);
    const yoke_backend &backend = *device.backend;
    if (op < 0 || op >= backend.kernel_count || !backend.kernels[op]) [[unlikely]]
        detail::fail_no_kernel(device, op_name);
    return backend.kernels[op];
}

}  // namespace yoke
