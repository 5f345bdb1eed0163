// Figures of a device's memory, beside a slow model of it.
#include "core/memory/statistics.h"
#include "core/memory/oom.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/conf.h"
#include "tests/core/memory/machine.h"
#include "tests/core/memory/model.h"
#include "tests/core/memory/units.h"

#include <map>
#include <random>
#include <thread>

namespace yoke {
namespace {

using test::expect_error;
using test::Figures;
using test::figures_of;
using test::kGiB;
using test::kKiB;
using test::kMiB;
using test::Machine;
using test::Model;

int64_t figure(Device &device, const std::string &key)
{
    const Figures figures = figures_of(device);
    EXPECT_TRUE(figures.contains(key)) << key;
    return figures.at(key).number;
}

TEST(MemoryFigures, HaveEveryKeyOnce)
{
    Machine machine({});
    const std::vector<MemoryFigure> all = memory_figures(machine.device);
    const Figures figures = figures_of(machine.device);
    EXPECT_EQ(all.size(), figures.size());
    for (const char *quantity :
         {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
          "active_bytes", "inactive_split_bytes", "requested_bytes"})
        for (const char *pool : {"all", "large_pool", "small_pool"})
            for (const char *field : {"current", "peak", "allocated", "freed"})
                EXPECT_TRUE(figures.contains(std::string(quantity) + "." + pool + "." + field));
    for (const char *key :
         {"num_alloc_retries", "num_ooms", "num_oom_rejections", "num_sync_all_streams",
          "num_device_alloc", "num_device_free", "max_split_size", "oversize_allocations.current",
          "oversize_segments.freed", "reserved_bytes_by_private_pools", "fragmentation",
          "stranded_bytes", "largest_free_bytes", "foreign_bytes", "cross_stream_steals",
          "rung.growth", "rung.give_back"})
        EXPECT_TRUE(figures.contains(key)) << key;
}

TEST(MemoryFigures, EqualAModelAtEveryStepOfOneThread)
{
    Machine machine({.capacity = 64 * kGiB});
    Model model;
    std::mt19937_64 random(7);
    std::vector<Block *> live;
    for (int step = 0; step < 3000; ++step) {
        if (live.size() < 200 && random() % 5 < 3) {
            const uint64_t bytes = 1 + random() % (random() % 3 ? 100 * kKiB : 5 * kMiB);
            live.push_back(allocate_block(machine.device, bytes, 0));
            EXPECT_EQ(live.back()->requested, bytes);
            model.alloc(*live.back());
        } else if (!live.empty()) {
            std::swap(live[random() % live.size()], live.back());
            model.free(*live.back());
            free_block(machine.device, live.back());
            live.pop_back();
        }
        if (step % 200 == 0) model.check(machine.device);
        if (step == 1500) {
            reset_peak_memory_stats(machine.device);
            model.reset_peaks();
        }
        if (step == 2000) {
            reset_accumulated_memory_stats(machine.device);
            model.reset_totals();
        }
    }
    for (Block *block : live) {
        model.free(*block);
        free_block(machine.device, block);
    }
    model.check(machine.device);
}

// A thread holds far more than it publishes while another thread reaches the peak.
TEST(MemoryFigures, APeakOfOneThreadHasWhatAnotherOneHolds)
{
    Machine machine({.capacity = 64 * kGiB});
    Device &device = machine.device;
    Block *held = allocate_block(device, 3 * kGiB, 0);
    std::thread([&] {
        free_block(device, allocate_block(device, kGiB, 0));
        Block *block = allocate_block(device, 100 * kMiB, 0);
        EXPECT_EQ(figure(device, "allocated_bytes.all.current"),
                  static_cast<int64_t>(3 * kGiB + 100 * kMiB));
        free_block(device, block);
    }).join();
    const int64_t peak = figure(device, "allocated_bytes.all.peak");
    EXPECT_LE(peak, static_cast<int64_t>(4 * kGiB));
    EXPECT_GE(peak, static_cast<int64_t>(4 * kGiB - 64 * kKiB));  // for the other thread
    free_block(device, held);
    EXPECT_EQ(figure(device, "allocated_bytes.all.current"), 0);
    EXPECT_EQ(figure(device, "allocation.all.allocated"), 3);
    EXPECT_EQ(figure(device, "allocation.all.freed"), 3);
}

TEST(MemoryFigures, APeakIsExactOnceTheOtherThreadsHaveEnded)
{
    Machine machine({});
    Device &device = machine.device;
    const auto come_and_go = [&](uint64_t bytes) {
        free_block(device, allocate_block(device, bytes, 0));
    };
    come_and_go(64);
    for (int i = 0; i < 3; ++i) std::thread([&] { come_and_go(64); }).join();
    for (const uint64_t kib : {40, 60, 8}) {
        reset_peak_memory_stats(device);
        come_and_go(kib * kKiB);
        EXPECT_EQ(figure(device, "allocated_bytes.all.peak"), static_cast<int64_t>(kib * kKiB));
        EXPECT_EQ(figure(device, "allocation.small_pool.peak"), 1);
    }
}

TEST(MemoryFigures, APeakIsExactBesideAThreadThatOnlyFrees)
{
    Machine machine({});
    Device &device = machine.device;
    Block *held[4];
    for (Block *&block : held) block = allocate_block(device, 40 * kKiB, 0);
    std::atomic<bool> ends{false};
    std::atomic<int> freed{0};
    std::thread other([&] {
        for (Block *block : held) free_block(device, block), ++freed;
        while (!ends) std::this_thread::yield();
    });
    while (freed < 4) std::this_thread::yield();
    reset_peak_memory_stats(device);
    free_block(device, allocate_block(device, 60 * kKiB, 0));
    EXPECT_EQ(figure(device, "allocated_bytes.all.peak"), static_cast<int64_t>(60 * kKiB));
    EXPECT_EQ(figure(device, "allocated_bytes.all.current"), 0);
    ends = true;
    other.join();
}

TEST(MemoryFigures, APeakOfTwoThreadsLacks64KiBAtMost)
{
    Machine machine({});
    Device &device = machine.device;
    std::atomic<int> arrived{0};
    const auto hold = [&] {
        free_block(device, allocate_block(device, 64, 0));
        ++arrived;
        while (arrived < 2) std::this_thread::yield();
        Block *block = allocate_block(device, 60 * kKiB, 0);
        ++arrived;
        while (arrived < 4) std::this_thread::yield();
        free_block(device, block);
    };
    std::thread one(hold), two(hold);
    one.join();
    two.join();
    EXPECT_GE(figure(device, "allocated_bytes.all.peak"),
              static_cast<int64_t>(120 * kKiB - 64 * kKiB));
}

TEST(MemoryFigures, ALapOfSeveralThreadsEndsWithWhatIsThere)
{
    Machine machine({.capacity = 64 * kGiB});
    Device &device = machine.device;
    Block *held = allocate_block(device, kGiB, 0);
    std::thread([&] { free_block(device, allocate_block(device, 64, 0)); }).join();
    free_block(device, allocate_block(device, 2 * kGiB, 0));
    EXPECT_EQ(lap_peak(device), static_cast<int64_t>(3 * kGiB));
    free_block(device, allocate_block(device, kGiB, 0));
    EXPECT_EQ(lap_peak(device), static_cast<int64_t>(2 * kGiB));
    EXPECT_EQ(lap_peak(device), static_cast<int64_t>(kGiB));
    free_block(device, held);
}

TEST(MemoryFigures, APeakStaysWhenOthersGetMemoryLaterOrGiveItBack)
{
    Machine machine({.capacity = 64 * kGiB});
    Device &device = machine.device;
    count_foreign(device, kGiB);
    free_block(device, allocate_block(device, 2 * kGiB, 0));
    const auto peak = static_cast<int64_t>(3 * kGiB);
    count_foreign(device, -static_cast<int64_t>(kGiB));
    EXPECT_EQ(figure(device, "allocated_bytes.all.peak"), peak);
    count_foreign(device, 2 * kGiB);
    EXPECT_EQ(figure(device, "allocated_bytes.all.peak"), peak);
    count_foreign(device, -static_cast<int64_t>(2 * kGiB));
}

// Each block is allocated by a thread and freed by another.
TEST(MemoryFigures, APeakHasNothingThatAnotherThreadHasFreed)
{
    Machine machine({.capacity = 64 * kGiB});
    Device &device = machine.device;
    std::atomic<Block *> handed{nullptr};
    std::atomic<bool> ends{false};
    std::thread other([&] {
        free_block(device, allocate_block(device, 64, 0));
        while (!ends)
            if (Block *block = handed.exchange(nullptr)) free_block(device, block);
    });
    for (int round = 0; round < 100; ++round) {
        handed = allocate_block(device, 100 * kMiB, 0);
        while (handed) std::this_thread::yield();
        if (round == 50) reset_peak_memory_stats(device);
    }
    ends = true;
    other.join();
    const auto most = static_cast<int64_t>(200 * kMiB);  // both blocks may live for a moment
    EXPECT_LE(figure(device, "allocated_bytes.all.peak"), most);
    EXPECT_LE(figure(device, "allocated_bytes.large_pool.peak"), most);
    EXPECT_LE(figure(device, "allocation.large_pool.peak"), 2);
    EXPECT_LE(lap_peak(device), most);
}

// The other thread frees less than the amount that it has to report, and this thread gets as much.
TEST(MemoryFigures, APeakIsNotTooHighForWhatAnotherThreadHasFreedAndNotTold)
{
    Machine machine({.capacity = kGiB});
    Device &device = machine.device;
    std::atomic<int> turn{0};
    const auto await = [&](int next) {
        while (turn != next) std::this_thread::yield();
    };
    std::thread other([&] {
        std::vector<Block *> blocks;
        for (int i = 0; i < 64; ++i) blocks.push_back(allocate_block(device, kKiB, 0));
        turn = 1;
        await(2);
        for (int i = 0; i < 31; ++i) free_block(device, blocks[static_cast<size_t>(i)]);
        turn = 3;
        await(4);
        for (size_t i = 31; i < blocks.size(); ++i) free_block(device, blocks[i]);
    });
    Block *small = allocate_block(device, 64, 0);
    await(1);
    reset_peak_memory_stats(device);
    const int64_t before = memory_stats(device).allocated;
    turn = 2;
    await(3);
    Block *large = allocate_block(device, 33 * kKiB, 0);
    const int64_t behind = memory_stats(device).allocated;
    EXPECT_LE(figure(device, "allocated_bytes.all.peak"), std::max(before, behind));
    EXPECT_LE(figure(device, "active_bytes.all.peak"), std::max(before, behind));
    EXPECT_LE(lap_peak(device), std::max(before, behind));
    turn = 4;
    other.join();
    free_block(device, small);
    free_block(device, large);
}

TEST(MemoryFigures, SumsOfManyThreadsAreExactWhenTheyRest)
{
    Machine machine({.capacity = 64 * kGiB});
    Device &device = machine.device;
    constexpr int kThreads = 4, kSteps = 5000;
    std::atomic<int64_t> requested{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            std::mt19937 random(static_cast<unsigned>(t));
            Block *kept[16] = {};
            for (int step = 0; step < kSteps; ++step) {
                Block *&place = kept[random() % 16];
                free_block(device, place);
                const uint64_t bytes = 1 + random() % (200 * kKiB);
                requested += static_cast<int64_t>(bytes);
                place = allocate_block(device, bytes, 0);
            }
            for (Block *block : kept) free_block(device, block);
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(figure(device, "allocation.all.current"), 0);
    EXPECT_EQ(figure(device, "allocated_bytes.all.current"), 0);
    EXPECT_EQ(figure(device, "requested_bytes.all.current"), 0);
    EXPECT_EQ(figure(device, "allocation.all.allocated"), kThreads * kSteps);
    EXPECT_EQ(figure(device, "allocation.all.freed"), kThreads * kSteps);
    EXPECT_EQ(figure(device, "requested_bytes.all.allocated"), requested);
    EXPECT_GE(figure(device, "allocated_bytes.all.peak"), 0);
}

TEST(MemoryFigures, ABlockThatWaitsForAnotherStreamIsActive)
{
    Machine machine({.runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    Block *block = machine.alloc(3 * kMiB, one->lane);
    const auto bytes = static_cast<int64_t>(block->capacity);
    machine.use(*block, two->lane);
    free_block(device, block, lane_bit(two->lane.id));
    EXPECT_EQ(figure(device, "allocated_bytes.all.current"), 0);
    EXPECT_EQ(figure(device, "active_bytes.all.current"), bytes);
    EXPECT_EQ(figure(device, "active.large_pool.current"), 1);
    EXPECT_EQ(figure(device, "active_bytes.all.freed"), 0);
    reset_accumulated_memory_stats(device);
    EXPECT_EQ(figure(device, "active_bytes.all.freed"), 0);
    EXPECT_EQ(memory_use(device).waiting, bytes);
    Block *more = machine.alloc(5 * kMiB, two->lane);
    EXPECT_EQ(figure(device, "active_bytes.all.peak"),
              bytes + static_cast<int64_t>(more->capacity));
    EXPECT_EQ(figure(device, "allocated_bytes.all.peak"), static_cast<int64_t>(more->capacity));
    free_block(device, more);
    block = machine.alloc(3 * kMiB, one->lane);
    EXPECT_EQ(figure(device, "active_bytes.all.current"), bytes);
    EXPECT_EQ(figure(device, "rung.used_elsewhere"), 1);
    free_block(device, block);
}

TEST(MemoryFigures, TheActivePeakOfSeveralThreadsHasWhatWaits)
{
    Machine machine({.runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    std::atomic<bool> has_counted{false}, ends{false};
    std::thread other([&] {
        free_block(device, allocate_block(device, 64, 0));
        has_counted = true;
        while (!ends) std::this_thread::yield();
    });
    while (!has_counted) std::this_thread::yield();
    Block *block = machine.alloc(300 * kMiB, one->lane);
    machine.use(*block, two->lane);
    const auto bytes = static_cast<int64_t>(block->capacity);
    free_block(device, block, lane_bit(two->lane.id));
    EXPECT_EQ(figure(device, "active_bytes.all.current"), bytes);
    machine.hollow.work().finish();
    machine.alloc(300 * kMiB, one->lane);
    EXPECT_EQ(figure(device, "active_bytes.large_pool.peak"), bytes);
    free_block(device, block);
    ends = true;
    other.join();
}

TEST(MemoryFigures, TellWhoKeepsWhat)
{
    Machine machine({.capacity = kGiB, .has_virtual_memory = false, .runs_at_once = false});
    Device &device = machine.device;
    const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
    for (const auto &[mib, stream] : {std::pair(100, &one), {60, &two}}) {
        Block *block = machine.alloc(static_cast<uint64_t>(mib) * kMiB, (*stream)->lane);
        machine.use(*block, (*stream)->lane);
        free_block(device, block);
    }
    EXPECT_EQ(figure(device, "stranded_bytes"), static_cast<int64_t>(60 * kMiB));
    EXPECT_EQ(figure(device, "largest_free_bytes"), static_cast<int64_t>(100 * kMiB));
    EXPECT_EQ(figure(device, "segment.all.current"), 2);
    EXPECT_EQ(figure(device, "inactive_split_bytes.all.current"), 0) << "whole segments";
    Block *half = machine.alloc(50 * kMiB, one->lane);
    EXPECT_EQ(figure(device, "inactive_split_bytes.all.current"), static_cast<int64_t>(50 * kMiB));
    EXPECT_EQ(figure(device, "inactive_split.all.current"), 2);
    EXPECT_EQ(figure(device, "inactive_split_bytes.all.allocated"),
              static_cast<int64_t>(50 * kMiB));
    EXPECT_EQ(figure(device, "inactive_split_bytes.large_pool.freed"), 0);
    count_foreign(device, 7 * kMiB);
    EXPECT_EQ(figure(device, "foreign_bytes"), static_cast<int64_t>(7 * kMiB));
    count_foreign(device, -static_cast<int64_t>(7 * kMiB));
    EXPECT_EQ(figure(device, "foreign_bytes"), 0);
    free_block(device, half);
    EXPECT_EQ(figure(device, "inactive_split_bytes.all.current"), 0);
    EXPECT_EQ(figure(device, "inactive_split_bytes.all.peak"), static_cast<int64_t>(50 * kMiB));
    const Figures figures = figures_of(device);
    EXPECT_NEAR(figures.at("fragmentation").part, 1 - 100. / 167, 1e-9);
}

TEST(OutOfMemory, ItsNumbersAreOfTheThreadsLastError)
{
    Machine machine({.capacity = 256 * kMiB, .has_virtual_memory = false});
    Device &device = machine.device;
    const test::Conf conf("expandable_segments:False");
    Block *block = allocate_block(device, 100 * kMiB + 1, 0);
    expect_error(YOKE_E_OOM,
                 {"200.00 MiB (209715200 bytes) were requested",
                  "100.00 MiB allocated (4.00 KiB of it rounding)", "drop tensors"},
                 [&] { allocate_block(device, 200 * kMiB, 0); });
    const OomRecord &oom = thread_state().oom;
    EXPECT_STREQ(oom.device, "hollow:0");
    EXPECT_EQ(oom.requested, static_cast<int64_t>(200 * kMiB));
    EXPECT_EQ(oom.allocated, static_cast<int64_t>(block->capacity));
    EXPECT_EQ(oom.rounding, static_cast<int64_t>(block->capacity - 100 * kMiB - 1));
    EXPECT_EQ(oom.total, static_cast<int64_t>(256 * kMiB));
    EXPECT_EQ(figure(device, "num_ooms"), 1);
    EXPECT_GE(figure(device, "num_alloc_retries"), 1);
    free_block(device, block);
}

}  // namespace
}  // namespace yoke
