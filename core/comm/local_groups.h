// local_groups.h: groups with all ranks in this process: threads, or devices.
#pragma once

#include "core/comm/group.h"

#include <vector>

namespace yoke {

// Makes `size` groups, whose ranks are threads of this process, and returns them by rank. Raises YOKE_E_VALUE for a
// size below 1 or above YOKE_MAX_RANKS. A `timeout_s` of 0 is the default.
std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call);

// Makes groups with a device per rank, all at once, and returns them by rank. Raises YOKE_E_VALUE for no devices,
// repeated devices, devices of two kinds, and for the CPU.
std::vector<Ref<Group>> init_devices(const std::vector<Device *> &devices, double timeout_s,
                                     const char *call);

}  // namespace yoke
