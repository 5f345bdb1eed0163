// card_state.h: what selection knows of a card beside the inventory.
#pragma once

#include "core/machine/inventory.h"

#include <cstdint>
#include <string>

namespace yoke {

struct CardState {
    std::string
        device;  // "cuda:1" as it was opened, or as CUDA would number it; "" if it has no number
    Rejection rejection;  // why it cannot be used here, beyond what the inventory says
    std::string note;     // what must be done before it can be used; "" for nothing
    // The other process that holds its lease; -1: it cannot be named; 0: none, or a rank of this job.
    int32_t holder = 0;
    int32_t ranks = 0;         // processes of this job's ranks that compute on it
    int64_t ranks_memory = 0;  // bytes that they use of it
};

}  // namespace yoke
