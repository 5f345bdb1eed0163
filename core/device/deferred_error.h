// deferred_error.h: deferred errors: errors of a device's work that the core finds where it has no caller to tell, as
// in a wait before a free. The core keeps them until the next call that waits for the device on behalf of its caller.
#pragma once

#include "core/device/device.h"

#include <string>

namespace yoke {

// Warns of a lost device once. Nothing of it can be waited for or given back, and every attempt fails alike: a line of
// warning for the first, and none for the others. True if that is what the status of the call says: no more need be
// said.
bool tell_loss(const Device &device, yoke_status status, const char *call) noexcept;

// Logs the error as a warning (once, where the device is lost), and keeps the first error of the device until a call
// raises it.
void defer_error(const Device &device, yoke_status status, const std::string &text) noexcept;

// Keeps the first error as defer_error() does, and logs nothing: who waits for the work is told the error, too.
// `failure`: its number, as Error has it.
void defer_error_of_work(const Device &device, yoke_status status, const std::string &text,
                         uint64_t failure) noexcept;
// Forgets the deferred errors of this failure, of all devices: who began the work has been told, so nobody else is.
void forget_deferred_error(uint64_t failure) noexcept;

// Raises the deferred error of this device, once.
void raise_deferred_error(const Device &device);

}  // namespace yoke
