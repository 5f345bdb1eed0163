// select.h: from a spec to devices, and which device a thread uses: its own choice (set_device), else the process
// default, which is resolved once from the configuration (YOKE_DEVICE, by default "auto").
#pragma once

#include "core/device/device.h"

#include <string_view>
#include <vector>

namespace yoke {

// The device of a spec (core/select/spec.h). "auto" is the best device of the first kind that has one; what it passes
// over is logged with the reason. Raises YOKE_E_VALUE for a spec that is not understood or wants several devices.
Device &open_device(std::string_view spec);

// The best `count` devices for a spec, in order; 0 takes the spec's own n. What the spec wants leased is leased by this
// process when they come back. Raises YOKE_E_UNAVAILABLE where nothing fits, YOKE_E_TIMEOUT where nothing did until its
// wait was over; nothing is leased then.
std::vector<Device *> select_devices(std::string_view spec, int32_t count);

// The calling thread's device, resolved at first use; raises if the configuration names one that
// cannot be used.
Device &current_device();
void set_current_device(Device &device);

}  // namespace yoke
