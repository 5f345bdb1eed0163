// nvml.h: what the driver's management library tells of the cards.
//
// All calls are made by a thread of the snapshot's own while the asking thread watches its progress: a call that takes
// longer than its deadline (YOKE_NVML_TIMEOUT seconds) is left behind with its thread, and from then
// on the library counts as hung for this process. Where every call answers, no thread is left and the library is shut
// down again, so a fork finds nothing of it in use.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>

namespace yoke {

// A driver that resets a card may take seconds; one that takes longer than this for a single answer does not come back.

// Fills in what NVML knows of the machine's cards, adds MIG instances behind them and cards that only NVML shows, and
// the links between them; and Machine::nvml and Machine::cuda_driver. Never raises for what is wrong with the library.
// With `links` false (one card is looked at) no pairs are asked for.
void ask_nvml(const Root &root, Machine &machine, bool links);

}  // namespace yoke
