// sample.h: one device, measured now.
#pragma once

#include "core/device/device.h"
#include "core/device/inventory.h"

namespace yoke {

// The card behind a device. Raises YOKE_E_UNAVAILABLE with the reason where nothing tells of it, YOKE_E_DEVICE_LOST when it
// is gone.
Card sample_device(const Device &device);

// A snapshot of one card alone, by its address in sysfs: without links, networks and other cards.
Machine look_at_card(const std::string &address);

}  // namespace yoke
