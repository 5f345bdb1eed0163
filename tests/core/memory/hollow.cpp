// Hollow device: its addresses, order of work and failures, and the checker of order over the device.
#include "core/memory/hollow.h"

#include "core/base/error.h"
#include "tests/core/memory/ordering.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using test::Ordering;

class HollowDevice : public testing::Test {
protected:
    HollowDevice()
        : hollow({.capacity = uint64_t{1} << 30, .runs_at_once = false}), table(hollow.table())
    {
    }

    void *handle() { return hollow.handle(); }
    uint64_t alloc(uint64_t bytes)
    {
        void *pointer = nullptr;
        EXPECT_EQ(table.alloc(handle(), bytes, &pointer), YOKE_OK);
        return reinterpret_cast<uintptr_t>(pointer);
    }
    yoke_status free(uint64_t address, uint64_t bytes)
    {
        return table.free(handle(), reinterpret_cast<void *>(address), bytes);
    }
    void *stream()
    {
        void *made = nullptr;
        EXPECT_EQ(table.stream_create(handle(), 0, &made), YOKE_OK);
        return made;
    }
    void *event()
    {
        void *made = nullptr;
        EXPECT_EQ(table.event_create(handle(), 0, &made), YOKE_OK);
        return made;
    }
    bool is_reached(void *e)
    {
        int32_t reached = 0;
        EXPECT_EQ(table.event_query(handle(), e, &reached), YOKE_OK);
        return reached;
    }

    Hollow hollow;
    const yoke_backend &table;
};

TEST_F(HollowDevice, GivesBlocksUpToItsCapacity)
{
    const uint64_t first = alloc(512 << 20), second = alloc(512 << 20);
    EXPECT_GE(second, first + (512 << 20));
    EXPECT_EQ(first % 512, 0u);
    void *none = nullptr;
    EXPECT_EQ(table.alloc(handle(), 1, &none), YOKE_E_OOM);
    EXPECT_EQ(take_backend_error(YOKE_E_OOM, "alloc"),
              "alloc: hollow: alloc: 1 bytes were requested, but 0 of 1073741824 are free");
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(free(first, 512 << 20), YOKE_OK);
    EXPECT_NE(free(first, 512 << 20), YOKE_OK) << "twice";
    EXPECT_NE(free(second, 1), YOKE_OK) << "of another size";
    EXPECT_NE(alloc(100), first) << "an address serves once";
    EXPECT_EQ(hollow.memory().used(), (uint64_t{512} << 20) + 100);
    EXPECT_FALSE(hollow.memory().is_backed(first, 1));
    EXPECT_TRUE(hollow.memory().is_backed(second + 5, 100));
}

TEST_F(HollowDevice, MapsChunks)
{
    const uint64_t unit = hollow.memory().unit();
    void *range = nullptr;
    uint64_t a = 0, b = 0;
    ASSERT_EQ(table.vmm_reserve(handle(), 4 * unit, &range), YOKE_OK);
    ASSERT_EQ(table.vmm_create(handle(), unit, &a), YOKE_OK);
    ASSERT_EQ(table.vmm_create(handle(), 2 * unit, &b), YOKE_OK);
    char *const at = static_cast<char *>(range);
    EXPECT_EQ(table.vmm_map(handle(), at + unit, unit, a), YOKE_OK);
    EXPECT_NE(table.vmm_map(handle(), at, 2 * unit, b), YOKE_OK) << "over the other one";
    EXPECT_NE(table.vmm_map(handle(), at + 3 * unit, 2 * unit, b), YOKE_OK) << "beyond the range";
    EXPECT_EQ(table.vmm_map(handle(), at + 2 * unit, 2 * unit, b), YOKE_OK);
    const auto address = reinterpret_cast<uintptr_t>(at);
    EXPECT_TRUE(hollow.memory().is_backed(address + unit, 3 * unit));
    EXPECT_FALSE(hollow.memory().is_backed(address + unit - 1, 2));
    EXPECT_NE(table.vmm_destroy(handle(), a), YOKE_OK) << "while it is mapped";
    EXPECT_NE(table.vmm_release(handle(), at, 4 * unit), YOKE_OK) << "while chunks are mapped";
    EXPECT_EQ(table.vmm_unmap(handle(), at + unit, unit), YOKE_OK);
    EXPECT_EQ(table.vmm_unmap(handle(), at + 2 * unit, 2 * unit), YOKE_OK);
    EXPECT_EQ(table.vmm_destroy(handle(), a), YOKE_OK);
    EXPECT_EQ(table.vmm_destroy(handle(), b), YOKE_OK);
    EXPECT_EQ(table.vmm_release(handle(), at, 4 * unit), YOKE_OK);
    EXPECT_EQ(hollow.memory().used(), 0u);
}

TEST_F(HollowDevice, RunsWorkInTheOrderThatATestSays)
{
    void *const a = stream(), *const b = stream(), *const e = event();
    EXPECT_TRUE(is_reached(e)) << "never recorded";
    hollow.use(a, HollowMemory::kFirst, 1);
    ASSERT_EQ(table.event_record(handle(), e, a), YOKE_OK);
    ASSERT_EQ(table.event_wait(handle(), e, b), YOKE_OK);
    hollow.use(b, HollowMemory::kFirst, 1);
    EXPECT_FALSE(is_reached(e));
    EXPECT_FALSE(hollow.work().run_step(b)) << "it waits";
    EXPECT_TRUE(hollow.work().run_step(a));
    EXPECT_FALSE(is_reached(e));
    EXPECT_TRUE(hollow.work().run_step(a));
    EXPECT_TRUE(is_reached(e));
    int32_t idle = 1;
    ASSERT_EQ(table.stream_query(handle(), b, &idle), YOKE_OK);
    EXPECT_EQ(idle, 0);
    ASSERT_EQ(table.stream_synchronize(handle(), b), YOKE_OK);
    EXPECT_TRUE(hollow.work().is_idle());
}

TEST_F(HollowDevice, AWaitOfTheHostRunsWhatItNeeds)
{
    void *const a = stream(), *const b = stream(), *const e = event();
    hollow.use(a, HollowMemory::kFirst, 1);
    ASSERT_EQ(table.event_record(handle(), e, a), YOKE_OK);
    ASSERT_EQ(table.event_wait(handle(), e, b), YOKE_OK);
    hollow.use(b, HollowMemory::kFirst, 1);
    ASSERT_EQ(table.stream_synchronize(handle(), b), YOKE_OK);
    EXPECT_TRUE(is_reached(e));
}

TEST_F(HollowDevice, AnEntryFailsAtTheCallThatATestNames)
{
    hollow.fail_at(HollowEntry::alloc, 2, YOKE_E_OOM);
    const uint64_t first = alloc(64);
    void *none = nullptr;
    EXPECT_EQ(table.alloc(handle(), 64, &none), YOKE_E_OOM);
    EXPECT_EQ(take_backend_error(YOKE_E_OOM, "alloc"),
              "alloc: hollow: alloc: the test makes this call fail");
    EXPECT_EQ(free(first, 64), YOKE_OK);
    EXPECT_EQ(free(alloc(64), 64), YOKE_OK);
    EXPECT_EQ(hollow.calls(HollowEntry::alloc), 3);
    EXPECT_EQ(hollow.calls(HollowEntry::free), 2);
    EXPECT_EQ(hollow.calls(), 5);
}

TEST_F(HollowDevice, HandlesThatAreNotAliveAreRefused)
{
    void *const a = stream(), *const e = event();
    ASSERT_EQ(table.stream_destroy(handle(), a), YOKE_OK);
    ASSERT_EQ(table.event_destroy(handle(), e), YOKE_OK);
    EXPECT_EQ(table.stream_synchronize(handle(), a), YOKE_E_CLOSED);
    EXPECT_EQ(table.event_record(handle(), e, nullptr), YOKE_E_CLOSED);
}

// ---- the checker ----------------------------------------------------------------------------------------------------

class HollowOrder : public HollowDevice {
protected:
    HollowOrder() : a(stream()), b(stream()), e(event()), block(alloc(4096))
    {
        hollow.watch(&ordering);
    }
    ~HollowOrder() override { hollow.watch(nullptr); }
    void record() { ASSERT_EQ(table.event_record(handle(), e, a), YOKE_OK); }

    Ordering ordering;
    void *const a, *const b, *const e;
    const uint64_t block;
};

TEST_F(HollowOrder, ASecondOwnerThatWaitsForNothingRaces)
{
    ordering.hand_out(a, block, 4096);
    hollow.use(a, block, 100);
    ordering.hand_out(b, block, 4096);
    ASSERT_EQ(ordering.races().size(), 1u);
    EXPECT_NE(ordering.races()[0].find("is given"), std::string::npos);
}

TEST_F(HollowOrder, OneThatWaitsForAnEventBehindTheUseDoesNot)
{
    ordering.hand_out(a, block, 4096);
    hollow.use(a, block, 100);
    record();
    ASSERT_EQ(table.event_wait(handle(), e, b), YOKE_OK);
    ordering.hand_out(b, block, 4096);
    EXPECT_EQ(ordering.races(), std::vector<std::string>{});
}

TEST_F(HollowOrder, AnEventAheadOfTheUseIsNotEnough)
{
    ordering.hand_out(a, block, 4096);
    record();
    hollow.use(a, block, 100);
    ASSERT_EQ(table.event_wait(handle(), e, b), YOKE_OK);
    ordering.hand_out(b, block, 4096);
    EXPECT_EQ(ordering.races().size(), 1u);
}

TEST_F(HollowOrder, BytesThatNobodyTouchedAreFree)
{
    hollow.use(a, block, 100);
    ordering.hand_out(b, block + 512, 1024);
    EXPECT_TRUE(ordering.races().empty());
    ordering.hand_out(b, block + 99, 1);
    EXPECT_EQ(ordering.races().size(), 1u);
}

TEST_F(HollowOrder, OrderPassesThroughTheHostAndOtherStreams)
{
    hollow.use(a, block, 100);
    record();
    ASSERT_EQ(table.event_synchronize(handle(), e), YOKE_OK);
    ordering.hand_out(b, block, 4096);
    EXPECT_TRUE(ordering.races().empty()) << "the host has waited, and gives what follows";

    void *const c = stream(), *const second = event();
    hollow.use(b, block, 100);
    ASSERT_EQ(table.event_record(handle(), e, b), YOKE_OK);
    ASSERT_EQ(table.event_wait(handle(), e, c), YOKE_OK);
    ASSERT_EQ(table.event_record(handle(), second, c), YOKE_OK);
    ASSERT_EQ(table.event_wait(handle(), second, a), YOKE_OK);
    ordering.hand_out(a, block, 4096);
    EXPECT_TRUE(ordering.races().empty()) << "through a third stream";
}

TEST_F(HollowOrder, WhatIsFreedOrUnmappedIsWaitedFor)
{
    hollow.use(a, block, 100);
    EXPECT_EQ(free(block, 4096), YOKE_OK);
    EXPECT_EQ(ordering.races().size(), 1u);

    const uint64_t other = alloc(4096);
    hollow.use(a, other, 100);
    ASSERT_EQ(table.stream_synchronize(handle(), a), YOKE_OK);
    EXPECT_EQ(free(other, 4096), YOKE_OK);
    EXPECT_EQ(ordering.races().size(), 1u) << "after a wait there is no other race";
}

TEST_F(HollowOrder, AQueryOrdersOnlyWhatItHasFoundDone)
{
    hollow.use(a, block, 100);
    record();
    EXPECT_FALSE(is_reached(e));
    ordering.hand_out(b, block, 4096);
    EXPECT_EQ(ordering.races().size(), 1u);

    const uint64_t other = alloc(4096);
    hollow.use(a, other, 100);
    record();
    hollow.work().finish();
    EXPECT_TRUE(is_reached(e));
    ordering.hand_out(b, other, 4096);
    EXPECT_EQ(ordering.races().size(), 1u);
}

}  // namespace
}  // namespace yoke
