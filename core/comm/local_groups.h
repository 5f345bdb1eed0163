// local_groups.h: groups with all ranks in this process: threads, or devices.
#pragma once

#include "core/comm/group.h"

#include <vector>

namespace yoke {

// Makes groups whose ranks are threads of this process, at most YOKE_MAX_RANKS.
std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call);

// Makes groups with a device per rank, all at once. Raises YOKE_E_VALUE for repeated devices, for devices of two
// kinds, and for the CPU.
std::vector<Ref<Group>> init_devices(const std::vector<Device *> &devices, double timeout_s,
                                     const char *call);

}  // namespace yoke
