// walk.h: looks at every block of a device, over a hollow backend, and checks the allocator's records of its memory.
#pragma once

#include "tests/core/memory/machine.h"

#include <string>
#include <vector>

namespace yoke::test {

// State of a device's arenas while no thread works with them.
class Walk {
public:
    explicit Walk(Machine &machine);

    // First promises that do not hold: blocks fill their extents, no two free blocks are neighbours, lists and sums
    // agree with the blocks, memory lies only where blocks are. Empty: all promises hold.
    const std::vector<std::string> &faults() const { return faults_; }

    uint64_t used = 0;  // bytes of used blocks in arenas
    uint64_t free = 0;
    uint64_t mapped = 0;   // bytes of chunks and segments in arenas, and of spare chunks
    uint64_t small = 0;    // part of `mapped` in arenas of small requests
    uint64_t largest = 0;  // free run, graphs' left out
    uint64_t stranded = 0;

private:
    void look_at(Arena &arena);
    void look_at(const Arena &arena, const Extent &extent);
    void look_at(const Arena &arena, const Block &block);
    void expect(bool holds, const Arena &arena, uint64_t address, const char *promise);

    const HollowMemory &memory_;
    std::vector<std::string> faults_;
    uint64_t free_by_lane_[kMaxLanes] = {};
};

// Refused request.
struct Refused {
    uint64_t size;       // size of the block
    const Arena *arena;  // null: a block of the backend's own
    bool may_wait;       // may wait for the device: the thread captures no graph of the device
};
// Returns memory that would have served the request in the state after the refusal, or "". No thread works with the
// device.
std::string way_on(Machine &machine, const Refused &refused);

}  // namespace yoke::test
