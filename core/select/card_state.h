// card_state.h: facts about a card for the selection, besides the inventory.
#pragma once

#include "core/machine/inventory.h"

#include <cstdint>
#include <string>

namespace yoke {

struct CardState {
    std::string
        device;  // "cuda:1" of the opened device, or as CUDA would number the card; "" without a number
    Rejection rejection;  // why the card cannot be used here, beyond the inventory's reasons
    std::string note;     // steps before the card can be used; "" for none
    // Other process with the card's lease; -1: unknown process; 0: no process, or a rank of this job.
    int32_t holder = 0;
    int32_t ranks = 0;         // this job's ranks that compute on the card
    int64_t ranks_memory = 0;  // bytes used by these ranks
};

}  // namespace yoke
