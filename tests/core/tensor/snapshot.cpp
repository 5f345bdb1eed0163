// Snapshots: a writer of memory under a snapshot copies the memory first. See core/tensor/snapshot.cpp.
#include "core/tensor/snapshot.h"
#include "core/autograd/backward.h"
#include "core/device/free_memory.h"
#include "core/ops/graph.h"
#include "core/ops/ops.h"
#include "core/optim/sgd.h"
#include "core/select/select.h"
#include "tests/core/cpu.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace yoke {
namespace {

using test::cpu;
using test::expect_error;

constexpr int64_t kCount = (3 << 18) + 5;  // float32 elements: three pieces and some bytes

Tensor numbers(int64_t count = kCount)
{
    Tensor t = make_tensor(cpu(), YOKE_F32, std::vector<int64_t>{count}, "test");
    std::iota(reinterpret_cast<float *>(t->data), reinterpret_cast<float *>(t->data) + count, 0.0F);
    return t;
}

Tensor all_ones()
{
    return ops::ones(std::vector<int64_t>{kCount});
}

std::vector<float> values(const void *data, int64_t count = kCount)
{
    const auto *from = static_cast<const float *>(data);
    return {from, from + count};
}

// Checks that the write alone copies its memory, and that copy() copies the rest.
void expect_kept(const Tensor &x, const std::function<void()> &write)
{
    const std::vector<float> before = values(x->data, x->numel);
    const Tensor untouched = numbers();
    const Ref<Snapshot> snapshot = Snapshot::take({x, untouched}, "save");
    write();
    EXPECT_NE(values(x->data, x->numel), before) << "the write writes nothing";
    EXPECT_EQ(values(snapshot->data(0), x->numel), before);
    snapshot->copy();
    EXPECT_EQ(values(snapshot->data(0), x->numel), before);
    EXPECT_EQ(values(snapshot->data(1)), values(untouched->data));
}

TEST(Snapshot, KeepsWhatOpsWriteInPlace)
{
    const Tensor x = numbers(), ones = all_ones();
    expect_kept(x, [&] { ops::add_(*x, *ones); });
    expect_kept(x, [&] { ops::fill_(*x, Operand(3.0)); });
    expect_kept(x, [&] { ops::copy_(*x, *ones); });
    expect_kept(x, [&] { ops::add_(*ops::slice(*x, 0, 7, 12), *ops::slice(*ones, 0, 0, 5)); });
}

TEST(Snapshot, KeepsWhatIsWrittenThroughATensorThatSharesTheMemory)
{
    const Tensor x = numbers();
    const std::vector<float> before = values(x->data);
    const Tensor head = ops::slice(*x, 0, 0, 10), tail = ops::slice(*x, 0, kCount - 10);
    const Ref<Snapshot> snapshot = Snapshot::take({head, x, tail}, "save");
    ops::fill_(*x, Operand(0.0));
    snapshot->copy();
    EXPECT_EQ(values(snapshot->data(1)), before);
    EXPECT_EQ(values(snapshot->data(0), 10),
              std::vector<float>(before.begin(), before.begin() + 10));
    EXPECT_EQ(values(snapshot->data(2), 10), std::vector<float>(before.end() - 10, before.end()));
}

TEST(Snapshot, KeepsWhatTheHostWrites)
{
    const Tensor x = numbers();
    const std::vector<float> zeros(kCount);
    expect_kept(x, [&] { copy_from_host(*x, zeros.data(), x->nbytes(), "test"); });
}

TEST(Snapshot, KeepsWhatAnOptimizerSteps)
{
    const Tensor x = numbers();
    set_requires_grad(*x, true);
    const Tensor loss = ops::sum(*ops::mul(*x, *x));
    yoke_tensor *root = loss.get();
    backward({&root, 1}, {}, false);
    const auto optimizer = Ref<Sgd>::adopt(new Sgd({{.lr = 0.5}, 0.9, false}));
    yoke_tensor *parameter = x.get();
    optimizer->add_group({&parameter, 1}, optimizer->defaults());
    optimizer->step();
    const Tensor momentum = optimizer->state(0, 0, optimizer->state_names()[0]);
    expect_kept(x, [&] { optimizer->step(); });
    expect_kept(momentum, [&] { optimizer->step(); });
}

TEST(Snapshot, KeepsWhatAReplayWrites)
{
    const Tensor x = numbers(), ones = all_ones();
    const Ref<Graph> graph = Ref<Graph>::adopt(new Graph(cpu()));
    graph->begin();
    ops::add_(*x, *ones);
    const Tensor made = ops::mul(*x, *ones);  // lives in the graph's memory
    graph->end();
    expect_kept(x, [&] { graph->replay(); });
    expect_kept(made, [&] { graph->replay(); });
}

TEST(Snapshot, ACaptureWritesNothingAndTakesNone)
{
    const Tensor x = numbers(), ones = all_ones();
    const std::vector<float> before = values(x->data);
    const Ref<Snapshot> snapshot = Snapshot::take({x}, "save");
    const Ref<Graph> graph = Ref<Graph>::adopt(new Graph(cpu()));
    graph->begin();
    ops::add_(*x, *ones);
    expect_error(YOKE_E_STATE, {"save", "capture"}, [&] { Snapshot::take({x}, "save"); });
    graph->end();
    graph->replay();
    snapshot->copy();
    EXPECT_EQ(values(snapshot->data(0)), before);
}

TEST(Snapshot, OfWhatNobodyElseHasThereIsNoCopy)
{
    std::vector<Tensor> ours;
    ours.push_back(numbers());
    const void *data = ours[0]->data;
    const Ref<Snapshot> snapshot = Snapshot::take(std::move(ours), "save");
    EXPECT_EQ(snapshot->data(0), data);
    const Tensor x = numbers(), view = ops::slice(*x, 0, 1, 4);
    const Ref<Snapshot> shared = Snapshot::take({x}, "save");
    EXPECT_NE(shared->data(0), x->data);
    snapshot->copy();
    shared->copy();
    EXPECT_EQ(values(snapshot->data(0)), values(x->data));
}

TEST(Snapshot, TwoOfOneMomentEach)
{
    const Tensor x = numbers(), ones = all_ones();
    const std::vector<float> first = values(x->data);
    const Ref<Snapshot> one = Snapshot::take({x}, "save");
    ops::add_(*x, *ones);
    const std::vector<float> second = values(x->data);
    const Ref<Snapshot> two = Snapshot::take({x}, "save");
    ops::fill_(*x, Operand(-1.0));
    EXPECT_TRUE(has_snapshots());
    two->copy();
    one->copy();
    EXPECT_FALSE(has_snapshots());
    EXPECT_EQ(values(one->data(0)), first);
    EXPECT_EQ(values(two->data(0)), second);
}

TEST(Snapshot, HoldsMemoryThatIsLetGo)
{
    Tensor x = numbers();
    const std::vector<float> before = values(x->data);
    const Ref<Snapshot> snapshot = Snapshot::take({x, numbers(0)}, "save");
    x = {};
    const Tensor next = all_ones();  // would reuse the memory
    snapshot->copy();
    EXPECT_EQ(values(snapshot->data(0)), before);
    EXPECT_EQ(snapshot->bytes(1), 0U);
}

TEST(Snapshot, WriterAndCopierShareTheWork)
{
    for (int round = 0; round < 20; ++round) {
        std::vector<Tensor> all;
        for (int i = 0; i < 4; ++i) all.push_back(numbers());
        const std::vector<float> before = values(all[0]->data);
        const Ref<Snapshot> snapshot = Snapshot::take(all, "save");
        std::thread copier([&] { snapshot->copy(); });
        for (const Tensor &each : all) ops::fill_(*each, Operand(static_cast<double>(round)));
        copier.join();
        for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(values(snapshot->data(i)), before);
    }
}

// The process may take 96 MiB more of address space. Memory kept for the next snapshot must serve other requests, and
// the allocator's memory must serve a snapshot.
TEST(Snapshot, RoomThatWaitsGoesWhereSomebodyHasNone)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer takes all of the address space";
#endif
    test::in_fresh_process([] {
        constexpr int64_t kLarge = 40 << 20;  // float32 elements: 160 MiB
        Tensor x = make_tensor(cpu(), YOKE_F32, std::vector<int64_t>{kLarge}, "test");
        Snapshot::take({x}, "save")->copy();
        uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlimit limit{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (96U << 20),
                           RLIM_INFINITY};
        ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        Tensor more = make_tensor(cpu(), YOKE_F32, std::vector<int64_t>{kLarge}, "test");
        expect_error(YOKE_E_OOM, {"not enough host memory"}, [&] { Snapshot::take({x}, "save"); });
        more = {};  // the allocator keeps the memory
        Snapshot::take({x}, "save")->copy();
    });
}

Groups small_group()
{
    return {"0::/\n", std::filesystem::temp_directory_path() / "yoke_group_of_snapshots"};
}

TEST(Snapshot, WhatTheGroupHasNoRoomForIsRefusedBeforeTheKernelEndsTheProcess)
{
    test::in_fresh_process([] {
        const std::filesystem::path folder = small_group().mount;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "memory.max") << (uint64_t{600} << 20) << "\n";
        std::ofstream(folder / "memory.current") << (uint64_t{580} << 20) << "\n";
        const Tensor x = numbers(8 << 20);  // 32 MiB
        detail::groups_of_process = small_group;
        expect_error(YOKE_E_OOM, {"not enough host memory"}, [&] { Snapshot::take({x}, "save"); });
        std::ofstream(folder / "memory.current") << (uint64_t{500} << 20) << "\n";
        Snapshot::take({x}, "save")->copy();
        std::filesystem::remove_all(folder);
    });
}

}  // namespace
}  // namespace yoke
