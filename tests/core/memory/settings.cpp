// Settings of the allocator: how the allocator reads them, and the effect of each setting.
#include "core/memory/alloc_conf.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/memory/conf.h"
#include "tests/core/memory/machine.h"
#include "tests/core/memory/units.h"

#include <malloc.h>
#include <cstdlib>
#include <random>
#include <thread>

namespace yoke {
namespace {

using test::Conf;
using test::expect_error;
using test::kGiB;
using test::kMiB;
using test::Machine;

TEST(AllocConf, ChangesWhatATextNamesAlone)
{
    const Conf conf("garbage_collection_threshold:0.8");
    EXPECT_EQ(describe(alloc_conf()),
              "expandable_segments:True,garbage_collection_threshold:0.8,ask_fences:False");
    set_alloc_conf("f", "ask_fences:True,expandable_segments:False");
    EXPECT_EQ(describe(alloc_conf()),
              "expandable_segments:False,garbage_collection_threshold:0.8,ask_fences:True");
    set_alloc_conf("f", "");
    EXPECT_EQ(describe(alloc_conf()),
              "expandable_segments:False,garbage_collection_threshold:0.8,ask_fences:True");
}

TEST(AllocConf, ATextThatIsWrongChangesNothing)
{
    const std::string before = describe(alloc_conf());
    const auto refuses = [](const std::string &text, std::initializer_list<const char *> words) {
        expect_error(YOKE_E_VALUE, words, [&] { set_alloc_conf("set_alloc_conf", text); });
    };
    refuses("ask_fences:True,expandable_segment:True",
            {"set_alloc_conf: there is no setting 'expandable_segment'",
             "did you mean 'expandable_segments'"});
    refuses("max_split_size_mb:20", {"no setting 'max_split_size_mb'", "ask_fences"});
    refuses("ask_fences:True,ask_fences:True", {"'ask_fences' is given twice"});
    refuses("ask_fences", {"'ask_fences' is ''", "True or False"});
    refuses("ask_fences:true", {"'ask_fences' is 'true'", "True or False"});
    refuses("ask_fences: True", {"' True'"});
    for (const char *value : {"1", "1.5", "-0.1", "nan", "inf", "0.5x", "", "1e400"})
        refuses(std::string("garbage_collection_threshold:") + value,
                {"'garbage_collection_threshold'", "below 1"});
    EXPECT_EQ(describe(alloc_conf()), before);
}

TEST(AllocConf, ComesFromTheEnvironmentAtFirst)
{
    test::in_fresh_process([] {
        setenv("YOKE_ALLOC_CONF", "ask_fences:True", 1);
        setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False", 1);
        EXPECT_TRUE(alloc_conf().ask_fences && alloc_conf().expandable_segments);
    });
    test::in_fresh_process([] {
        setenv(
            "PYTORCH_CUDA_ALLOC_CONF",
            "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8],garbage_collection_threshold:0.6,backend:native, expandable_segments:False",
            1);
        EXPECT_EQ(alloc_conf().garbage_collection_threshold, 0.6);
        EXPECT_FALSE(alloc_conf().expandable_segments);
    });
    test::in_fresh_process([] {
        setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:128,,[:", 1);
        EXPECT_EQ(describe(alloc_conf()), describe(AllocConf()));
    });
    test::in_fresh_process([] {
        setenv("YOKE_ALLOC_CONF", "ask_fences:yes", 1);
        for (int i = 0; i < 2; ++i)
            expect_error(YOKE_E_VALUE, {"YOKE_ALLOC_CONF", "'yes'", "True or False"},
                         [] { alloc_conf(); });
    });
}

TEST(AllocConf, WithoutExpandableSegmentsMemoryComesAsSegments)
{
    const Conf conf("expandable_segments:False");
    Machine machine({.capacity = kGiB});
    Block *block = allocate_block(machine.device, 3 * kMiB, 0);
    EXPECT_EQ(machine.hollow.memory().chunk_count(), 0u);
    EXPECT_EQ(memory_stats(machine.device).reserved, static_cast<int64_t>(20 * kMiB));
    set_alloc_conf("f", "expandable_segments:True");
    Block *other = allocate_block(machine.device, 300 * kMiB, 0);
    EXPECT_GT(machine.hollow.memory().chunk_count(), 0u) << "from then on";
    free_block(machine.device, block);
    free_block(machine.device, other);
}

TEST(AllocConf, AboveTheThresholdIdleMemoryGoesBackBeforeGrowth)
{
    for (const char *threshold : {"0", "0.5"}) {
        const Conf conf(std::string("expandable_segments:False,garbage_collection_threshold:") +
                        threshold);
        Machine machine({.capacity = kGiB});
        const auto alloc = [&](uint64_t mib) {
            return allocate_block(machine.device, mib * kMiB, 0);
        };
        // Smaller than an eighth of the next request, so the blocks stay without the setting.
        Block *idle[] = {alloc(12), alloc(12), alloc(12)};
        for (Block *block : idle) free_block(machine.device, block);
        Block *below = alloc(400), *above = alloc(300);
        const int64_t idle_bytes = *threshold == '0' && !threshold[1] ? 36 : 0;
        EXPECT_EQ(memory_stats(machine.device).reserved,
                  static_cast<int64_t>((700 + idle_bytes) * kMiB))
            << threshold;
        free_block(machine.device, below);
        free_block(machine.device, above);
    }
}

// Idle memory lies in chunks above the wanted size, so no chunk is taken.
TEST(AllocConf, AboveTheThresholdIdleChunksGoBackBeforeANewOneComes)
{
    for (const char *threshold : {"0", "0.5"}) {
        const Conf conf(std::string("garbage_collection_threshold:") + threshold);
        Machine machine({.capacity = 4 * kGiB});
        const Ref<Stream> other = make_stream(machine.device, 0);
        std::vector<Block *> live, idle;
        for (int i = 0; i < 10; ++i) live.push_back(allocate_block(machine.device, 64 * kMiB, 0));
        for (int i = 0; i < 30; ++i) idle.push_back(allocate_block(machine.device, 64 * kMiB, 0));
        for (Block *block : idle) free_block(machine.device, block);
        live.push_back(allocate_block(machine.device, 3 * kMiB / 2, other->lane.id));
        const auto all = static_cast<int64_t>(40 * 64 * kMiB + 2 * kMiB);
        if (threshold == std::string("0"))
            EXPECT_EQ(memory_stats(machine.device).reserved, all);
        else
            EXPECT_LT(memory_stats(machine.device).reserved, all / 2);
        for (Block *block : live) free_block(machine.device, block);
    }
}

// Two streams use the blocks, on a device with virtual memory and on a device without.
TEST(Caching, OffReservesWhatIsAllocatedAtEveryStep)
{
    for (const bool has_virtual_memory : {true, false}) {
        Machine machine({.has_virtual_memory = has_virtual_memory, .runs_at_once = false});
        Device &device = machine.device;
        const Ref<Stream> one = make_stream(device, 0), two = make_stream(device, 0);
        set_caching(false);
        std::mt19937 random(3);
        std::vector<std::pair<Block *, uint16_t>> live;
        for (int step = 0; step < 3000; ++step) {
            if (random() % 2 || live.empty()) {
                const Lane &lane = (random() % 2 ? one : two)->lane;
                const uint64_t bytes = 1 + random() % (random() % 2 ? 5000 : 3 * kMiB);
                live.emplace_back(machine.alloc(bytes, lane), 0);
                EXPECT_EQ(live.back().first->size, bytes);
                machine.use(*live.back().first, lane);
            } else if (random() % 3) {
                std::swap(live[random() % live.size()], live.back());
                free_block(device, live.back().first, live.back().second);
                live.pop_back();
            } else {
                auto &[block, uses] = live[random() % live.size()];
                machine.use(*block, two->lane);
                if (block->lane != two->lane.id) uses |= lane_bit(two->lane.id);
            }
            const MemoryStats stats = memory_stats(device);
            ASSERT_EQ(stats.reserved, stats.allocated);
            ASSERT_EQ(stats.reserved, static_cast<int64_t>(machine.hollow.memory().used()));
        }
        for (const auto &[block, uses] : live) free_block(device, block, uses);
        EXPECT_EQ(machine.hollow.memory().used(), 0u);
        set_caching(true);
        free_block(device, allocate_block(device, 5 * kMiB, one->lane.id));
        empty_cache(&device);
        EXPECT_EQ(machine.hollow.memory().used(), 0u);
    }
}

TEST(Caching, OffUsesDescriptorsAgain)
{
    Machine machine({});
    machine.hollow.watch(nullptr);  // a watcher remembers each address
    set_caching(false);
    const auto come_and_go = [&] {
        free_block(machine.device, allocate_block(machine.device, 1000, 0));
    };
    come_and_go();
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100000; ++i) come_and_go();  // more than pages of former owners have
    EXPECT_LE(mallinfo2().uordblks, before + (64 << 10));
}

TEST(Caching, AFreeThatMeetsTheSwitchReachesTheBackend)
{
    for (int round = 0; round < 300; ++round) {
        Machine machine({});
        std::atomic<bool> stops{false};
        std::atomic<int> frees{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&] {
                while (!stops) {
                    free_block(machine.device, allocate_block(machine.device, 2 * kMiB, 0));
                    ++frees;
                }
            });
        while (frees < 100) std::this_thread::yield();
        set_caching(false);
        empty_cache(&machine.device);  // the switch does so for devices of the registry
        stops = true;
        for (std::thread &thread : threads) thread.join();
        ASSERT_EQ(memory_stats(machine.device).reserved, 0) << "round " << round;
    }
}

}  // namespace
}  // namespace yoke
