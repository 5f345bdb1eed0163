// device.h: a device of the core: a backend's device, and the core's own data about it.
//
// Devices are made once, at the first use of their backend, and live until the library is unloaded; handles only
// count.
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
    bool host = false;    // uses host memory; only this device goes on in a forked child
    std::string name;     // "cpu", "cuda:1": name in messages and specs
    yoke_backend_device_info info{};
    std::atomic<yoke::DeviceMemory *> memory{nullptr};  // made by core/memory at first use
    std::atomic<yoke::StreamTable *> streams{nullptr};  // made at the first use of a stream
    // True if the device ever had a stream beside the default stream. Until then, no call looks up the thread's
    // stream.
    std::atomic<bool> has_side_streams{false};
    std::atomic<bool> disabled{false};  // its kind is switched off
    // Captured graphs of the device in all threads, and waits for the whole device: see core/device/capture.h.
    std::atomic<int32_t> captures{0}, whole_waits{0};

    mutable std::atomic<bool> loss_told{false};  // the log has reported the loss

    const char *kind() const noexcept { return backend->kind; }

protected:
    void destroy() noexcept override {}  // owned by the registry
};

namespace yoke {

using Device = ::yoke_device;

// Returns the devices of a kind, in order; opens its backend. Raises YOKE_E_UNAVAILABLE with the reason if the
// backend cannot run, the kind is switched off, or YOKE_PLATFORMS leaves the kind out. Raises YOKE_E_FORKED in a
// forked child (all kinds but cpu), and YOKE_E_VALUE for an unknown kind. If YOKE_PLATFORMS names a failing kind,
// every call that needs a device raises this error.
const std::vector<Device *> &devices_of(std::string_view kind);

// Switch a kind off and on again; a kind switched off twice must be switched on twice. disable raises YOKE_E_STATE,
// with the names, while an object lives on a device of the kind. Both raise YOKE_E_VALUE for an unknown kind and for
// the cpu.
void disable(std::string_view kind);
void enable(std::string_view kind);

// Raises YOKE_E_STATE while the calling thread captures a graph: `call` would wait for the device, or move bytes once
// that every replay would need.
void check_not_capturing(const char *call);

// Waits for all work given to the device; during the capture of a graph of the device, lane by lane
// (core/device/capture.h). Then raises the device's deferred error, if there is one. Raises YOKE_E_STATE if the
// calling thread captures a graph.
void synchronize(Device &device);

// Returns all devices opened so far, by ordinal.
std::vector<Device *> opened_devices();

// Returns the device with this handle of a backend, or nullptr. Handles are addresses, so no two devices of a process
// share a handle.
Device *find_device(const void *handle) noexcept;

namespace detail {
[[noreturn]] __attribute__((cold)) void fail_unusable(const Device &device);
[[noreturn]] void fail_no_kernel(const Device &device, const char *op_name);
}  // namespace detail

// Raises YOKE_E_FORKED if a fork left the device's driver behind, YOKE_E_UNAVAILABLE if its kind is switched off. All
// code that gives work to a device calls this first.
inline void check_usable(const Device &device)
{
    if (device.host) return;
    if (is_forked_child() || device.disabled.load(std::memory_order_relaxed)) [[unlikely]]
        detail::fail_unusable(device);
}

// Returns the backend's function for a kernel. Raises YOKE_E_UNSUPPORTED "<kind> has no kernel for <op>" if there is
// no function, and the errors of check_usable.
inline yoke_kernel_fn kernel_of(const Device &device, int32_t op, const char *op_name)
{
    check_usable(device);
    const yoke_backend &backend = *device.backend;
    if (op < 0 || op >= backend.kernel_count || !backend.kernels[op]) [[unlikely]]
        detail::fail_no_kernel(device, op_name);
    return backend.kernels[op];
}

}  // namespace yoke
