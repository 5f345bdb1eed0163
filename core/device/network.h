// network.h: InfiniBand and RoCE ports, from /sys/class/infiniband.
#pragma once

#include "core/device/files.h"
#include "core/device/inventory.h"

namespace yoke {

std::vector<NetworkCard> read_networks(const Root &root);

}  // namespace yoke
