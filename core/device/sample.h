// sample.h: one device, measured now.
#pragma once

#include "core/device/device.h"
#include "core/machine/inventory.h"

namespace yoke {

// Returns the card behind a device. Raises YOKE_E_UNAVAILABLE with the reason if no source describes the card,
// YOKE_E_DEVICE_LOST if the card is gone.
Card sample_device(const Device &device);

}  // namespace yoke
