// late.h: failures of a device's work that were found where nobody could be told, as in a wait before a free: kept
// until the next call that waits for the device on behalf of its caller.
#pragma once

#include "core/device/device.h"

#include <string>

namespace yoke {

// Logs it as a warning, and keeps the first until it is told.
void keep_late_failure(const Device &device, yoke_status status, const std::string &text) noexcept;

// Raises what was kept of this device, once.
void tell_late_failure(const Device &device);

}  // namespace yoke
