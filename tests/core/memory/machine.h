// machine.h: a device over a hollow backend for tests of the allocator, whose streams have real lanes.
#pragma once

#include "core/base/thread_state.h"
#include "core/memory/device_memory.h"
#include "core/memory/hollow.h"
#include "core/memory/magazines.h"
#include "core/memory/memory.h"
#include "tests/core/memory/kept.h"
#include "tests/core/memory/ordering.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

namespace yoke::test {

// Registered nowhere. Caching is on for as long as it lives.
class Machine {
public:
    explicit Machine(const HollowOptions &options) : hollow(options), was_caching_(is_caching())
    {
        hollow.watch(&ordering);
        device.backend = &hollow.table();
        device.handle = hollow.handle();
        // Threads have places for devices of these numbers: without a place they keep neither blocks nor accounts.
        constexpr int32_t kFirst = 64;
        static int32_t machines = 0;
        device.ordinal = kFirst + machines++ % (ThreadCache::kMaxDevices - kFirst);
        device.name = "hollow:0";
        device.info.alignment = options.alignment;
        set_caching(true);
    }
    ~Machine()
    {
        hollow.work().finish();
        empty_cache(&device);
        EXPECT_EQ(hollow.memory().used(), 0u) << "memory was lost";
        EXPECT_EQ(hollow.memory().chunk_count(), 0u);
        for (const std::string &race : ordering.races()) ADD_FAILURE() << race;
        leave_place();
        delete device.memory.exchange(nullptr);
        set_caching(was_caching_);
    }
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    // Returns a block for work of this stream, ordered behind all earlier uses of its bytes.
    Block *alloc(uint64_t bytes, const Lane &lane)
    {
        Block *block = allocate_block(device, bytes, lane.id);
        ordering.hand_out(lane.native, block->address, block->size);
        EXPECT_TRUE(hollow.memory().is_backed(block->address, block->size));
        return block;
    }
    void use(const Block &block, const Lane &lane)
    {
        hollow.use(lane.native, block.address, block.size);
    }

    Ordering ordering;
    Hollow hollow;
    Device &device = make_kept<Device>();

private:
    // Takes the calling thread's place for the device away, which another machine is to have. Other threads have ended.
    void leave_place()
    {
        ThreadCache *const cache = ThreadCache::of_thread();
        if (!cache) return;
        cache->close_accounts();
        std::free(cache->slots[device.ordinal].exchange(nullptr));
    }

    const bool was_caching_;
};

}  // namespace yoke::test
