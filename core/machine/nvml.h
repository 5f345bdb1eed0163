// nvml.h: facts from the driver's management library about the cards.
//
// A thread of the snapshot's own makes all calls while the asking thread watches. If a call takes longer than its
// deadline (YOKE_NVML_TIMEOUT seconds), the call is left behind with its thread. From then on, the library counts as
// hung for this process. If every call answers, no thread is left, and the library is shut down again, so a fork
// never finds the library in use.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>

namespace yoke {

// Fills in NVML's facts about the machine's cards, with Machine::nvml and Machine::cuda_driver. Adds MIG instances
// after their cards, cards known only to NVML, and the links between cards. Never raises for an error of the library.
// With `links` false (a look at one card), asks for no pairs.
void ask_nvml(const Root &root, Machine &machine, bool links);

}  // namespace yoke
