// visibility.h: the cards that CUDA would show a process, and their order, by the variables of the environment alone.
//
// CUDA_VISIBLE_DEVICES is read like the CUDA runtime reads it (torch's rules where CUDA's are not documented):
// numbers as for strtoul, unique prefixes of UUIDs, MIG-<uuid>, MIG-GPU-<uuid>/<GI>/<CI>. Kinds do not mix. The first
// invalid entry ends the list. A duplicate empties the list. "" hides all cards, an unset variable hides no card.
// CUDA_DEVICE_ORDER chooses the order of the numbers.
#pragma once

#include "core/machine/inventory.h"

#include <optional>
#include <string>
#include <vector>

namespace yoke {

struct Visible {
    std::vector<int> cards;  // indexes into Machine::cards, in CUDA's order
    std::string problem;  // why the list was cut off, with the entry; "" if the whole list was read
    std::string dropped;  // parts of entries that CUDA silently ignores, "" for none
    std::string corrected;  // the user's probable intention, "" if the list is right
    bool mixed_order =
        false;  // numbers were used, cards differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID
};

// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; nullopt: not set.
struct CudaVariables {
    std::optional<std::string> visible, order;
};

// Keeps the current values of the variables from now on. Called right before CUDA starts, because CUDA reads its
// variables once, at its start.
void keep_cuda_variables();

// Returns the values read by CUDA; before CUDA's start, the current values.
CudaVariables cuda_variables();

// Warns once of each variable that changed after CUDA had read it.
void warn_of_late_cuda_variables();

// Returns the cards that CUDA would show, in its order. `visible` and `order` are the variables' values; nullopt: not
// set.
Visible visible_cards(const Machine &machine, const std::optional<std::string> &visible,
                      const std::optional<std::string> &order);

}  // namespace yoke
