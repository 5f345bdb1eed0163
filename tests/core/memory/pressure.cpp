// Memory that goes before a request is refused: core/memory/memory.cpp, core/memory/pinned.cpp.
#include "core/base/lent.h"
#include "core/memory/device_memory.h"
#include "core/memory/magazines.h"
#include "core/memory/pinned.h"
#include "tests/core/fake_backend.h"

#include <gtest/gtest.h>

#include <utility>

namespace yoke {
namespace {

using test::fake;

// The copies of a save belong to a higher layer, which provides a callback to release them. After the release there
// is memory.
TEST(MemoryPressure, WhatWaitsForTheNextSaveGoesBeforeARequestIsRefused)
{
    static int emptied;
    emptied = 0;
    const auto former = std::exchange(lent.empty_snapshot_cache, []() noexcept {
        ++emptied;
        fake.alloc_status = YOKE_OK;
    });
    yoke_backend table = test::fake_table("fake");
    table.host_alloc = test::fake_entries::alloc;
    table.host_free = test::fake_entries::free_block;
    static Device device;  // the thread remembers the device
    device.backend = &table;
    device.handle = &table;
    device.ordinal = 3;
    device.name = "fake:0";
    device.info.alignment = 64;

    fake.alloc_status = YOKE_E_OOM;
    Block *block = allocate_block(device, 8192, 0);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(emptied, 1);
    free_block(device, block);

    fake.alloc_status = YOKE_E_OOM;
    PinnedBlock *pinned = allocate_pinned(device, 100);
    EXPECT_NE(pinned->data, nullptr);
    EXPECT_EQ(emptied, 2);
    free_pinned(pinned);

    empty_cache(&device);
    EXPECT_EQ(emptied, 3);
    delete device.memory.exchange(nullptr);
    lent.empty_snapshot_cache = former;
}

}  // namespace
}  // namespace yoke
