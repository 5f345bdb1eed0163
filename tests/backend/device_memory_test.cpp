// Devices, plain memory, pinned memory, copies and fills.
#include "contract.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace yoke::test {

using DeviceMemory = Contract;
YOKE_ON_EVERY_BACKEND(DeviceMemory);

std::vector<uint8_t> counting(size_t bytes, int step = 1)
{
    std::vector<uint8_t> values(bytes);
    for (size_t i = 0; i < bytes; ++i)
        values[i] = static_cast<uint8_t>(i * static_cast<size_t>(step) + (i >> 8));
    return values;
}

TEST_P(DeviceMemory, AnOpenDeviceDescribesItself)
{
    EXPECT_EQ(info_.index, 0);
    EXPECT_GT(strnlen(info_.name, sizeof info_.name), 0u);
    EXPECT_LT(strnlen(info_.name, sizeof info_.name), sizeof info_.name);
    EXPECT_LT(strnlen(info_.uuid, sizeof info_.uuid), sizeof info_.uuid);
    EXPECT_GT(info_.total_memory, 0u);
    EXPECT_GT(info_.multiprocessors, 0);
    ASSERT_GT(info_.alignment, 0u);
    EXPECT_EQ(info_.alignment & (info_.alignment - 1), 0u) << "no power of two";
    EXPECT_EQ(info_.struct_size, sizeof info_);
}

TEST_P(DeviceMemory, WhereThereAreDevicesThereIsNoReasonForNone)
{
    char why[8] = "unset";
    table_->why_unavailable(why, sizeof why);
    EXPECT_STREQ(why, "");
    char guarded = 'x';
    table_->why_unavailable(&guarded, 0);  // writes nothing at all
    EXPECT_EQ(guarded, 'x');
}

TEST_P(DeviceMemory, ADeviceThatDoesNotExistCannotBeOpened)
{
    int32_t count = 0;
    ASSERT_DONE(table_->device_count(&count));
    int mark = 0;
    for (const int32_t index : {count, -1, INT32_MAX}) {
        void *device = &mark;
        expect_failure(YOKE_E_INDEX, table_->device_open(index, &device), "device_open");
        EXPECT_EQ(device, &mark) << "a failure leaves its out parameter alone";
    }
}

TEST_P(DeviceMemory, ADeviceOpensAgainAfterItWasClosed)
{
    void *again = nullptr;
    ASSERT_DONE(table_->device_open(0, &again));
    yoke_backend_device_info info{};
    info.struct_size = sizeof info;
    EXPECT_DONE(table_->device_info(again, &info));
    EXPECT_STREQ(info.name, info_.name);
    table_->device_close(again);
    ASSERT_DONE(table_->device_open(0, &again));
    EXPECT_DONE(table_->device_synchronize(again));
}

TEST_P(DeviceMemory, BlocksAreAlignedAndDoNotOverlap)
{
    struct Range {
        uintptr_t begin, end;
    };
    std::vector<Range> ranges;
    for (const uint64_t bytes :
         {1u, 3u, 63u, 64u, 65u, 4096u, 100'000u, 5'000'000u, 9'000'001u, 1u}) {
        const auto at = reinterpret_cast<uintptr_t>(block(bytes));
        ASSERT_NE(at, 0u);
        EXPECT_EQ(at % info_.alignment, 0u) << bytes;
        ranges.push_back({at, at + bytes});
    }
    std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
    for (size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].end, ranges[i].begin);
}

TEST_P(DeviceMemory, EveryByteOfABlockHoldsWhatWasWritten)
{
    for (const size_t bytes : {1u, 100u, 4097u, 3'000'001u, 8'000'000u}) {
        const std::vector<uint8_t> values = counting(bytes);
        EXPECT_EQ(download(upload(values), bytes), values) << bytes;
    }
}

TEST_P(DeviceMemory, AShortageIsOutOfMemoryAndNothingElseIsLost)
{
    const std::vector<uint8_t> values = counting(1000);
    const uint8_t *kept = upload(values);
    for (const uint64_t bytes :
         {uint64_t{1} << 60, UINT64_MAX - 4096, UINT64_MAX, uint64_t{1} << 63}) {
        int mark = 0;
        void *data = &mark;
        expect_failure(YOKE_E_OOM, table_->alloc(device_, bytes, &data), "alloc");
        EXPECT_EQ(data, &mark);
    }
    EXPECT_EQ(download(kept, values.size()), values);
    EXPECT_NE(block(1000), nullptr);
}

TEST_P(DeviceMemory, MemInfoTellsFreeAndTotal)
{
    uint64_t free_bytes = 0, total = 0;
    ASSERT_DONE(table_->mem_info(device_, &free_bytes, &total));
    EXPECT_GT(free_bytes, 0u);
    EXPECT_LE(free_bytes, total);
    EXPECT_EQ(total, info_.total_memory);
}

TEST_P(DeviceMemory, CopiesGoInEveryDirection)
{
    for (const size_t bytes : {1u, 4096u, 2'100'003u}) {
        const std::vector<uint8_t> values = counting(bytes, 7);
        auto *first = upload(values);
        auto *second = static_cast<uint8_t *>(block(bytes)),
             *third = static_cast<uint8_t *>(block(bytes));
        EXPECT_DONE(table_->copy(device_, second, first, bytes, YOKE_COPY_DEVICE, nullptr));
        EXPECT_DONE(table_->copy(device_, third, second, bytes, YOKE_COPY_PEER, nullptr));
        EXPECT_EQ(download(third, bytes), values) << "copies on one stream come after one another";
    }
}

TEST_P(DeviceMemory, ACopyOfAPartLeavesTheRestAlone)
{
    auto *data = upload(std::vector<uint8_t>(300, 9));
    const std::vector<uint8_t> part(100, 4);
    ASSERT_DONE(
        table_->copy(device_, data + 100, part.data(), 100, YOKE_COPY_HOST_TO_DEVICE, nullptr));
    std::vector<uint8_t> expected(300, 9);
    std::fill_n(expected.begin() + 100, 100, uint8_t{4});
    EXPECT_EQ(download(data, 300), expected);
}

TEST_P(DeviceMemory, ACopyOfNothingIsDone)
{
    EXPECT_DONE(table_->copy(device_, nullptr, nullptr, 0, YOKE_COPY_HOST_TO_DEVICE, nullptr));
    EXPECT_DONE(table_->copy(device_, nullptr, nullptr, 0, YOKE_COPY_DEVICE, nullptr));
    EXPECT_DONE(table_->fill(device_, nullptr, 1, 0, nullptr));
}

TEST_P(DeviceMemory, ADirectionThatDoesNotExistIsRefused)
{
    auto *data = static_cast<uint8_t *>(block(64));
    for (const int32_t direction : {0, -1, 5}) {
        const std::vector<uint8_t> source(64);
        expect_failure(YOKE_E_VALUE,
                       table_->copy(device_, data, source.data(), 64, direction, nullptr), "copy");
    }
}

TEST_P(DeviceMemory, AFillSetsItsBytesAndNoOthers)
{
    for (const size_t bytes : {1u, 1000u, 2'500'001u}) {
        auto *data = upload(std::vector<uint8_t>(bytes + 2, 7));
        ASSERT_DONE(table_->fill(device_, data + 1, 0xAB, bytes, nullptr));
        std::vector<uint8_t> expected(bytes + 2, 0xAB);
        expected.front() = expected.back() = 7;
        EXPECT_EQ(download(data, bytes + 2), expected);
    }
}

TEST_P(DeviceMemory, PinnedHostMemoryIsTheHostsAndCopiesBothWays)
{
    if (!table_->host_alloc) GTEST_SKIP() << "this backend has no pinned memory";
    const uint64_t bytes = 1'000'003;
    void *pinned = nullptr;
    ASSERT_DONE(table_->host_alloc(device_, bytes, &pinned));
    auto *host = static_cast<uint8_t *>(pinned);
    const std::vector<uint8_t> values = counting(bytes, 3);
    std::copy(values.begin(), values.end(), host);
    auto *data = static_cast<uint8_t *>(block(bytes));
    ASSERT_DONE(table_->copy(device_, data, host, bytes, YOKE_COPY_HOST_TO_DEVICE, nullptr));
    ASSERT_DONE(table_->device_synchronize(device_));
    std::fill_n(host, bytes, uint8_t{0});
    ASSERT_DONE(table_->copy(device_, host, data, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr));
    ASSERT_DONE(table_->device_synchronize(device_));
    EXPECT_TRUE(std::equal(values.begin(), values.end(), host));
    EXPECT_DONE(table_->host_free(device_, pinned, bytes));
    int mark = 0;
    void *huge = &mark;
    expect_failure(YOKE_E_OOM, table_->host_alloc(device_, uint64_t{1} << 60, &huge), "host_alloc");
    EXPECT_EQ(huge, &mark);
}

TEST_P(DeviceMemory, ThreadsAllocateCopyAndFreeSideBySide)
{
    const auto work = [this](int number) {
        for (int round = 0; round < 50; ++round) {
            const size_t bytes =
                1000 + static_cast<size_t>(number) * 4096 + static_cast<size_t>(round) * 97'001;
            void *data = nullptr;
            ASSERT_DONE(table_->alloc(device_, bytes, &data));
            const std::vector<uint8_t> values = counting(bytes, number + 2);
            ASSERT_DONE(table_->copy(device_, data, values.data(), bytes, YOKE_COPY_HOST_TO_DEVICE,
                                     nullptr));
            std::vector<uint8_t> back(bytes);
            ASSERT_DONE(
                table_->copy(device_, back.data(), data, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr));
            ASSERT_DONE(table_->device_synchronize(device_));
            ASSERT_EQ(back, values);
            ASSERT_DONE(table_->free(device_, data, bytes));
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
    for (std::thread &thread : threads) thread.join();
}

}  // namespace yoke::test
