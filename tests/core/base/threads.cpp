// State of threads, objects passed between threads, and state after a fork.
#include "core/base/fork.h"
#include "core/base/library.h"
#include "core/base/pool.h"
#include "core/base/refcount.h"
#include "core/base/tally.h"
#include "core/base/thread_state.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace yoke {
namespace {

using test::expect_error;

TEST(Pool, BlocksAreAlignedAndApart)
{
    std::vector<std::pair<char *, size_t>> blocks;
    for (size_t bytes = 1; bytes < 3000; bytes += 37) {
        auto *block = static_cast<char *>(pool_alloc(bytes));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
        memset(block, static_cast<int>(bytes & 0x7F), bytes);
        blocks.emplace_back(block, bytes);
    }
    for (auto &[block, bytes] : blocks) {
        for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], static_cast<char>(bytes & 0x7F));
        pool_free(block, bytes);
    }
}

TEST(Pool, ZeroBytesAreABlockToo)
{
    void *block = pool_alloc(0);
    EXPECT_NE(block, nullptr);
    pool_free(block, 0);
}

TEST(Pool, ABlockMayBeFreedByAnotherThread)
{
    std::vector<void *> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(pool_alloc(200));
    std::thread([&] {
        for (void *block : blocks) pool_free(block, 200);
        std::set<void *> again;
        for (int i = 0; i < 1000; ++i) again.insert(pool_alloc(200));
        EXPECT_EQ(again.size(), 1000u);
        for (void *block : again) pool_free(block, 200);
    }).join();
}

TEST(Pool, ASizeBeyondMemoryIsOutOfMemory)
{
    expect_error(YOKE_E_OOM, {"no host memory"}, [] { pool_alloc(SIZE_MAX / 2); });
}

TEST(Tally, IsTheSumOfWhatAllThreadsAdd)
{
    static Tally tally;
    EXPECT_EQ(tally.add(5), 5);  // this thread is the first
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            for (int i = 0; i < 20000; ++i) t % 2 ? tally.add(3) : tally.add_shared(-2);
        });
    for (int i = 0; i < 20000; ++i) tally.add(-1);
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(tally.sum(), 5 - 20000 + 2 * 20000 * 3 - 2 * 20000 * 2);
    const int64_t after = tally.add_shared(1);
    EXPECT_EQ(after, tally.sum());
}

TEST(Tally, StaysExactAfterItsFirstThreadHasEnded)
{
    static Tally tally;
    std::thread([] { tally.add(7); }).join();
    for (int i = 0; i < 10; ++i)  // their states may reuse the first state's memory
        std::thread([] { tally.add(1); }).join();
    EXPECT_EQ(tally.add(1), 18);
}

TEST(ThreadState, EachThreadHasItsOwn)
{
    thread_state().grad_disabled = 1;
    std::thread([] {
        EXPECT_EQ(thread_state().grad_disabled, 0);
        EXPECT_EQ(&thread_state(), &thread_state());
    }).join();
    EXPECT_EQ(thread_state().grad_disabled, 1);
    thread_state().grad_disabled = 0;
}

TEST(ThreadState, TheLastErrorOfOneThreadIsNotAnothers)
{
    store_last_error(YOKE_E_IO, "yoke_load", "mine", 0);
    std::thread([] {
        EXPECT_EQ(last_error()->status, YOKE_OK);
        EXPECT_STREQ(last_error()->message, "");
        store_last_error(YOKE_E_OOM, "yoke_add", "theirs", 0);
    }).join();
    EXPECT_EQ(last_error()->status, YOKE_E_IO);
    EXPECT_STREQ(last_error()->message, "mine");
}

class Counted : public RefCounted {
public:
    explicit Counted(std::atomic<int> *alive) : alive_(alive) { ++*alive_; }
    ~Counted() override { --*alive_; }

private:
    std::atomic<int> *alive_;
};

TEST(RefCount, TheLastReferenceEndsTheObject)
{
    std::atomic<int> alive{0};
    Ref<Counted> first = Ref<Counted>::adopt(new Counted(&alive));
    EXPECT_EQ(first->use_count(), 1u);
    Ref<Counted> second = first, third = std::move(first);
    EXPECT_FALSE(first.present());
    EXPECT_EQ(second->use_count(), 2u);
    third = third.get() ? third : nullptr;
    second = nullptr;
    EXPECT_EQ(alive, 1);
    Counted *raw = third.detach();
    EXPECT_TRUE(third == nullptr);
    EXPECT_EQ(alive, 1);
    {
        const Ref<Counted> shared = Ref<Counted>::share(raw);
        EXPECT_EQ(raw->use_count(), 2u);
    }
    raw->release();
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(Ref<Counted>::share(nullptr).present());
}

TEST(RefCount, ManyThreadsEndAnObjectOnce)
{
    std::atomic<int> alive{0};
    for (int round = 0; round < 200; ++round) {
        Ref<Counted> object = Ref<Counted>::adopt(new Counted(&alive));
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([mine = object]() mutable {
                for (int n = 0; n < 50; ++n) Ref<Counted> copy = mine;
                mine = nullptr;
            });
        object = nullptr;
        for (std::thread &thread : threads) thread.join();
        ASSERT_EQ(alive, 0);
    }
}

TEST(Once, RunsOnceAndAFailureMayBeTriedAgain)
{
    Once once;
    int runs = 0;
    expect_error(YOKE_E_IO, {"first"}, [&] {
        once.run("it", [&] {
            ++runs;
            fail(YOKE_E_IO, "first");
        });
    });
    EXPECT_FALSE(once.done());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { once.run("it", [&] { ++runs; }); });
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(runs, 2);
    EXPECT_TRUE(once.done());
}

TEST(Once, AStartThatAsksForItselfIsAnErrorAndNoHang)
{
    Once once;
    expect_error(YOKE_E_STATE, {"cuda", "during its start"},
                 [&] { once.run("cuda", [&] { once.run("cuda", [] {}); }); });
    EXPECT_FALSE(once.done());
}

TEST(Fork, AStartThatAForkCutInHalfIsAnErrorInTheChild)
{
    test::in_fresh_process([] {
        static Once once;
        mark_process_used();
        Mutex any(LockRank::kOther);  // the fork handlers come with the first lock
        std::atomic<bool> running{false}, stop{false};
        std::thread slow([&] {
            once.run("cuda", [&] {
                running = true;
                while (!stop) std::this_thread::yield();
            });
        });
        while (!running) std::this_thread::yield();
        EXPECT_TRUE(test::passes_in_child([] {
            expect_error(YOKE_E_FORKED, {"cuda", "forked while"}, [] { once.run("cuda", [] {}); });
        }));
        stop = true;
        slow.join();
    });
}

TEST(Fork, OnlyAChildOfAProcessThatUsedTheLibraryIsForked)
{
    test::in_fresh_process([] {
        static int hooks = 0;
        Mutex any(LockRank::kOther);
        on_fork_child([] { ++hooks; });
        EXPECT_TRUE(test::passes_in_child([] {
            EXPECT_FALSE(is_forked_child());
            EXPECT_EQ(hooks, 0);
        }));
        mark_process_used();
        EXPECT_TRUE(test::passes_in_child([] {
            EXPECT_TRUE(is_forked_child());
            EXPECT_EQ(hooks, 1);
            EXPECT_TRUE(test::passes_in_child([] { EXPECT_TRUE(is_forked_child()); }));
        }));
        EXPECT_FALSE(is_forked_child());
    });
}

TEST(Library, WhatCannotBeLoadedIsNamedWithTheReason)
{
    const Library missing = Library::open("/nowhere/libnone.so");
    EXPECT_FALSE(missing.loaded());
    EXPECT_NE(missing.problem().find("cannot load /nowhere/libnone.so: "), std::string::npos);
    EXPECT_NE(missing.problem().find("No such file"), std::string::npos) << missing.problem();
    EXPECT_EQ(missing.find("puts"), nullptr);
}

TEST(Library, SymbolsAreFoundOrNull)
{
    const Library maths = Library::open("libm.so.6");
    ASSERT_TRUE(maths.loaded()) << maths.problem();
    EXPECT_NE(maths.find("cos"), nullptr);
    EXPECT_EQ(maths.find("no_such_symbol"), nullptr);
    EXPECT_EQ(folder_of_code(nullptr), "");
}

}  // namespace
}  // namespace yoke
