// local_groups.h: groups whose ranks are all of this process: threads, or devices.
#pragma once

#include "core/comm/group.h"

#include <vector>

namespace yoke {

// Groups whose ranks are threads of this process, at most YOKE_MAX_RANKS.
std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call);

// Groups of which each is the rank of one device, made at once. Raises YOKE_E_VALUE for devices that stand twice, are
// of two kinds, or are the host's.
std::vector<Ref<Group>> init_devices(const std::vector<Device *> &devices, double timeout_s,
                                     const char *call);

}  // namespace yoke
