// arenas.h: a device of two streams, with virtual memory and without.
#pragma once

#include "tests/core/memory/machine.h"
#include "tests/core/memory/units.h"

namespace yoke::test {

class Arenas : public testing::TestWithParam<bool> {
protected:
    Arenas()
        : machine({.capacity = kGiB, .has_virtual_memory = GetParam(), .runs_at_once = false}),
          device(machine.device)
    {
    }
    int64_t reserved() { return memory_stats(device).reserved; }

    // Frees a block of the first stream while work of `user` uses it.
    Block *freed(uint64_t bytes, const Stream &user)
    {
        Block *block = machine.alloc(bytes, one->lane);
        machine.use(*block, user.lane);
        free_block(device, block, &user == one.get() ? 0 : lane_bit(user.lane.id));
        return block;
    }

    Machine machine;
    Device &device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
};

}  // namespace yoke::test
