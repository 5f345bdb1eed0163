// reasons.h: why a card cannot be used, with what to do about it.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

namespace yoke {

// Fills in the reasons of all cards that have none yet. To sleep is no reason; nor is a missing NVML, since CUDA can run
// without it.
void explain_cards(const Root &root, Machine &machine);

}  // namespace yoke
