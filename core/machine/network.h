// network.h: InfiniBand and RoCE ports, from /sys/class/infiniband.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

namespace yoke {

std::vector<NetworkCard> read_networks(const Root &root);

}  // namespace yoke
