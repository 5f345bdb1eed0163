// Virtual memory: reserved addresses, chunks, and the maps between them.
#include "contract.h"

#include <algorithm>
#include <random>
#include <thread>

namespace yoke::test {

class VirtualMemory : public Contract {
protected:
    void SetUp() override
    {
        Contract::SetUp();
        if (!device_) return;
        if (!table_->vmm_reserve) GTEST_SKIP() << "this backend has no virtual memory";
        ASSERT_DONE(table_->vmm_granularity(device_, &page_));
    }

    char *reserve(uint64_t bytes)
    {
        void *address = nullptr;
        EXPECT_DONE(table_->vmm_reserve(device_, bytes, &address));
        return static_cast<char *>(address);
    }
    uint64_t create(uint64_t bytes)
    {
        uint64_t chunk = 0;
        EXPECT_DONE(table_->vmm_create(device_, bytes, &chunk));
        return chunk;
    }
    void write(char *to, char value, uint64_t bytes)
    {
        EXPECT_DONE(table_->fill(device_, to, static_cast<uint8_t>(value), bytes, nullptr));
    }
    // Tells whether the ends and the middle of a mapped range hold `value`.
    bool holds(const char *from, char value, uint64_t bytes)
    {
        return download(from, 1)[0] == value && download(from + bytes / 2, 1)[0] == value &&
               download(from + bytes - 1, 1)[0] == value;
    }

    uint64_t page_ = 0;
};
YOKE_ON_EVERY_BACKEND(VirtualMemory);

TEST_P(VirtualMemory, TheGranularityIsAPowerOfTwo)
{
    ASSERT_GT(page_, 0u);
    EXPECT_EQ(page_ & (page_ - 1), 0u);
}

TEST_P(VirtualMemory, AChunkHoldsItsContentsWhileItIsUnmappedAndElsewhere)
{
    char *range = reserve(4 * page_);
    const uint64_t first = create(page_), second = create(2 * page_);
    ASSERT_DONE(table_->vmm_map(device_, range, page_, first));
    ASSERT_DONE(table_->vmm_map(device_, range + page_, 2 * page_, second));
    write(range, 'a', page_);
    write(range + page_, 'b', 2 * page_);
    EXPECT_TRUE(holds(range, 'a', page_));

    ASSERT_DONE(table_->vmm_unmap(device_, range, page_));
    ASSERT_DONE(table_->vmm_unmap(device_, range + page_, 2 * page_));
    // They change places.
    ASSERT_DONE(table_->vmm_map(device_, range, 2 * page_, second));
    ASSERT_DONE(table_->vmm_map(device_, range + 3 * page_, page_, first));
    EXPECT_TRUE(holds(range, 'b', 2 * page_));
    EXPECT_TRUE(holds(range + 3 * page_, 'a', page_));

    ASSERT_DONE(table_->vmm_unmap(device_, range, 2 * page_));
    ASSERT_DONE(table_->vmm_unmap(device_, range + 3 * page_, page_));
    EXPECT_DONE(table_->vmm_destroy(device_, first));
    EXPECT_DONE(table_->vmm_destroy(device_, second));
    EXPECT_DONE(table_->vmm_release(device_, range, 4 * page_));
}

TEST_P(VirtualMemory, ACopyMayCrossFromOneChunkIntoTheNext)
{
    char *range = reserve(2 * page_);
    const uint64_t chunks[] = {create(page_), create(page_)};
    ASSERT_DONE(table_->vmm_map(device_, range, page_, chunks[0]));
    ASSERT_DONE(table_->vmm_map(device_, range + page_, page_, chunks[1]));
    const std::vector<char> values(5000, 'x');
    ASSERT_DONE(table_->copy(device_, range + page_ - 2500, values.data(), 5000,
                             YOKE_COPY_HOST_TO_DEVICE, nullptr));
    EXPECT_EQ(download(range + page_ - 2500, 5000), values);
    for (int i = 0; i < 2; ++i) {
        EXPECT_DONE(table_->vmm_unmap(device_, range + static_cast<uint64_t>(i) * page_, page_));
        EXPECT_DONE(table_->vmm_destroy(device_, chunks[i]));
    }
    EXPECT_DONE(table_->vmm_release(device_, range, 2 * page_));
}

TEST_P(VirtualMemory, RangesBeginAtAMultipleOfTheGranularity)
{
    std::vector<char *> ranges;
    for (uint64_t pages = 1; pages <= 16; ++pages) {
        ranges.push_back(reserve(pages * page_));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(ranges.back()) % page_, 0u) << pages;
    }
    for (uint64_t pages = 1; pages <= 16; ++pages)
        EXPECT_DONE(table_->vmm_release(device_, ranges[pages - 1], pages * page_));
}

// An arena of a large GPU has tens of thousands of chunks, more than a process has files.
TEST_P(VirtualMemory, ManyChunksAreMappedInAnyOrder)
{
    constexpr uint64_t kChunks = 2000;
    void *address = nullptr;
    ASSERT_DONE(table_->vmm_reserve(device_, kChunks * page_, &address));
    char *range = static_cast<char *>(address);
    std::vector<uint64_t> chunks, order(kChunks);
    for (uint64_t i = 0; i < kChunks; ++i) {
        uint64_t chunk = 0;
        const yoke_status status = table_->vmm_create(device_, page_, &chunk);
        if (status == YOKE_E_OOM) {  // a device that is smaller
            expect_failure(status, "vmm_create");
            break;
        }
        ASSERT_DONE(status);
        chunks.push_back(chunk);
        order[i] = i;
    }
    ASSERT_GE(chunks.size(), 256u);
    order.resize(chunks.size());
    std::shuffle(order.begin(), order.end(), std::mt19937(7));
    for (const uint64_t i : order)
        ASSERT_DONE(table_->vmm_map(device_, range + i * page_, page_, chunks[i]));
    expect_failure(table_->vmm_unmap(device_, range, 2 * page_), "vmm_unmap of two chunks at once");
    std::shuffle(order.begin(), order.end(), std::mt19937(8));
    for (const uint64_t i : order)
        ASSERT_DONE(table_->vmm_unmap(device_, range + i * page_, page_));
    for (const uint64_t chunk : chunks) EXPECT_DONE(table_->vmm_destroy(device_, chunk));
    EXPECT_DONE(table_->vmm_release(device_, range, kChunks * page_));
}

TEST_P(VirtualMemory, SizesThatAreNoMultipleOfTheGranularityAreRefused)
{
    int mark = 0;
    void *address = &mark;
    uint64_t chunk = 7;
    for (const uint64_t bytes : {uint64_t{0}, page_ - 1, page_ + 64}) {
        expect_failure(YOKE_E_VALUE, table_->vmm_reserve(device_, bytes, &address), "vmm_reserve");
        expect_failure(YOKE_E_VALUE, table_->vmm_create(device_, bytes, &chunk), "vmm_create");
    }
    EXPECT_EQ(address, &mark);
    EXPECT_EQ(chunk, 7u);
}

TEST_P(VirtualMemory, AChunkIsMappedAtOnePlaceAtATime)
{
    char *range = reserve(2 * page_);
    const uint64_t chunk = create(page_);
    ASSERT_DONE(table_->vmm_map(device_, range, page_, chunk));
    expect_failure(YOKE_E_STATE, table_->vmm_map(device_, range + page_, page_, chunk),
                   "vmm_map twice");
    expect_failure(table_->vmm_destroy(device_, chunk), "vmm_destroy while mapped");
    expect_failure(table_->vmm_release(device_, range, 2 * page_), "vmm_release while mapped");
    write(range, 'k', page_);
    EXPECT_TRUE(holds(range, 'k', page_)) << "what was refused changed nothing";
    EXPECT_DONE(table_->vmm_unmap(device_, range, page_));
    EXPECT_DONE(table_->vmm_destroy(device_, chunk));
    EXPECT_DONE(table_->vmm_release(device_, range, 2 * page_));
}

TEST_P(VirtualMemory, WhatIsMappedElsewhereOrNotAtAllCannotBeUnmapped)
{
    char *range = reserve(2 * page_);
    expect_failure(table_->vmm_unmap(device_, range, page_), "vmm_unmap of nothing");
    const uint64_t chunk = create(page_);
    expect_failure(table_->vmm_map(device_, range, 2 * page_, chunk),
                   "vmm_map of more than the chunk");
    ASSERT_DONE(table_->vmm_map(device_, range, page_, chunk));
    expect_failure(table_->vmm_unmap(device_, range + page_, page_), "vmm_unmap beside the chunk");
    EXPECT_DONE(table_->vmm_unmap(device_, range, page_));
    EXPECT_DONE(table_->vmm_destroy(device_, chunk));
    EXPECT_DONE(table_->vmm_release(device_, range, 2 * page_));
}

TEST_P(VirtualMemory, ASecondChunkCannotBeMappedOverTheFirst)
{
    char *range = reserve(page_);
    const uint64_t first = create(page_), second = create(page_);
    ASSERT_DONE(table_->vmm_map(device_, range, page_, first));
    write(range, 'f', page_);
    expect_failure(table_->vmm_map(device_, range, page_, second), "vmm_map over a mapped chunk");
    EXPECT_TRUE(holds(range, 'f', page_));
    EXPECT_DONE(table_->vmm_unmap(device_, range, page_));
    EXPECT_DONE(table_->vmm_destroy(device_, first));
    EXPECT_DONE(table_->vmm_destroy(device_, second));
    EXPECT_DONE(table_->vmm_release(device_, range, page_));
}

TEST_P(VirtualMemory, ThreadsMapAndUnmapSideBySide)
{
    const auto work = [this](char value) {
        char *range = reserve(page_);
        const uint64_t chunk = create(page_);
        for (int round = 0; round < 20; ++round) {
            ASSERT_DONE(table_->vmm_map(device_, range, page_, chunk));
            if (round) {
                EXPECT_TRUE(holds(range, value, page_));
            }
            write(range, value, page_);
            ASSERT_DONE(table_->device_synchronize(device_));
            ASSERT_DONE(table_->vmm_unmap(device_, range, page_));
        }
        EXPECT_DONE(table_->vmm_destroy(device_, chunk));
        EXPECT_DONE(table_->vmm_release(device_, range, page_));
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work, static_cast<char>('a' + i));
    for (std::thread &thread : threads) thread.join();
}

}  // namespace yoke::test
