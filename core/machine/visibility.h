// visibility.h: which cards CUDA would show a process, and in which order, by the variables of the environment alone.
//
// CUDA_VISIBLE_DEVICES is read as the CUDA runtime reads it (torch's rules where CUDA's are not written down): numbers
// as strtoul takes them, unique prefixes of UUIDs, MIG-<uuid>, MIG-GPU-<uuid>/<GI>/<CI>; kinds do not mix; the first
// invalid entry ends the list; a duplicate empties it; "" hides all, an unset variable nothing. CUDA_DEVICE_ORDER says
// what the numbers count.
#pragma once

#include "core/machine/inventory.h"

#include <optional>
#include <string>
#include <vector>

namespace yoke {

struct Visible {
    std::vector<int> cards;  // indexes into Machine::cards, in CUDA's order
    std::string
        problem;  // what cut the list off, with the entry and why; "" when it was read to its end
    std::string dropped;    // what of entries CUDA reads over without a word, "" for nothing
    std::string corrected;  // what the user probably meant, "" when there is nothing to mend
    bool mixed_order =
        false;  // numbers were used, cards differ, and CUDA_DEVICE_ORDER is not PCI_BUS_ID
};

// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; nullopt: not set.
struct CudaVariables {
    std::optional<std::string> visible, order;
};

// CUDA reads its variables once, when it starts. Called right before that: from here on the values of now stand.
void keep_cuda_variables();

// As CUDA has read them; before that, as they are now.
CudaVariables cuda_variables();

// Warns, once for each, of those that changed after CUDA had read them.
void warn_of_late_cuda_variables();

// `visible` and `order` are the variables' values; nullopt: not set.
Visible visible_cards(const Machine &machine, const std::optional<std::string> &visible,
                      const std::optional<std::string> &order);

}  // namespace yoke
