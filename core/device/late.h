// late.h: failures of a device's work that were found where nobody could be told, as in a wait before a free: kept
// until the next call that waits for the device on behalf of its caller.
#pragma once

#include "core/device/device.h"

#include <string>

namespace yoke {

// Of a device that is lost nothing can be waited for or given back, and every attempt fails alike: a line of warning
// for the first, and none for the others. True if that is what the status of the call says: no more need be said.
bool tell_loss(const Device &device, yoke_status status, const char *call) noexcept;

// Logs it as a warning (once, where the device is lost), and keeps the first until it is told.
void keep_late_failure(const Device &device, yoke_status status, const std::string &text) noexcept;

// The same of a work whose beginner can be told, too: nothing is logged.
void keep_failed_work(const Device &device, yoke_status status, const std::string &text) noexcept;
// Whoever began it has been told this text, of any device: nobody else is.
void forget_late_failure(const std::string &text) noexcept;

// Raises what was kept of this device, once.
void tell_late_failure(const Device &device);

}  // namespace yoke
