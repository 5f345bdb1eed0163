// select.h: from a spec to devices, and a thread's device: the thread's own choice (set_device), else the process
// default, resolved once from the configuration (YOKE_DEVICE, by default "auto").
#pragma once

#include "core/device/device.h"

#include <string_view>
#include <vector>

namespace yoke {

// Returns the device of a spec (core/select/spec.h). "auto" is the best device of the first kind with a usable
// device; skipped kinds are logged with the reason. Raises YOKE_E_VALUE for an invalid spec, or a spec of several
// devices.
Device &open_device(std::string_view spec);

// Returns the best `count` devices for a spec, in order; 0 takes the spec's own n. If the spec asks for leases, this
// process holds them at the return. Raises YOKE_E_UNAVAILABLE if no device fits, and YOKE_E_TIMEOUT if no device
// fitted before the end of the wait. After an error, no lease is held.
std::vector<Device *> select_devices(std::string_view spec, int32_t count);

// Returns the calling thread's device, resolved at first use. Raises if the configured device cannot be used.
Device &current_device();
void set_current_device(Device &device);

}  // namespace yoke
