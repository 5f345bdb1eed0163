// statistics.h: all known figures of a device's memory, by PyTorch's keys and further keys of Yoke.
#pragma once

#include "core/device/device.h"

#include <string>
#include <vector>

namespace yoke {

// A number, or a part of 1.
struct MemoryFigure {
    std::string key;
    int64_t number = 0;
    double part = 0;
    bool is_part = false;
};

// Returns all figures, in a fixed order. Waits for no device; looks at every free block. Raises std::bad_alloc.
std::vector<MemoryFigure> memory_figures(Device &device);

// Bytes of a device by use.
struct MemoryUse {
    int64_t allocated = 0, requested = 0, reserved = 0;
    int64_t free = 0;      // in arenas, for any request
    int64_t largest = 0;   // largest free block
    int64_t stranded = 0;  // free bytes outside the stream with most free bytes
    int64_t waiting = 0;   // for work of other streams
    int64_t graphs = 0;    // reserved by captured graphs, their blocks included
    int64_t foreign = 0;   // used by other libraries, as engines of groups
    int64_t held = 0;      // the rest: in threads' magazines, in chunks without an address
};
MemoryUse memory_use(Device &device);

// Starts totals and counts again from 0.
void reset_accumulated_memory_stats(Device &device);

}  // namespace yoke
