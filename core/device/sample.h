// sample.h: one device, measured now.
#pragma once

#include "core/device/device.h"
#include "core/machine/inventory.h"

namespace yoke {

// The card behind a device. Raises YOKE_E_UNAVAILABLE with the reason where nothing tells of it, YOKE_E_DEVICE_LOST
// when it is gone.
Card sample_device(const Device &device);

}  // namespace yoke
