// Memory of graphs: core/memory/graph_pool.cpp, growth.cpp.
#include "core/memory/graph_pool.h"
#include "tests/core/memory/machine.h"
#include "tests/core/memory/units.h"

namespace yoke {
namespace {

using test::kMiB;

TEST(GraphPools, MemoryThatIsIdleGoesBackWithTheGraph)
{
    for (const bool has_virtual_memory : {true, false}) {
        test::Machine machine({.has_virtual_memory = has_virtual_memory});
        const Ref<GraphPool> pool = GraphPool::make(machine.device, 0);
        pool->serve_thread();
        free_block(machine.device, allocate_block(machine.device, 100 * kMiB, 0));
        pool->stop_serving_thread();
        pool->let_go();
        EXPECT_EQ(machine.hollow.memory().range_count(), 0u);
        EXPECT_EQ(machine.hollow.memory().block_count(), 0u);
    }
}

TEST(GraphPools, MemoryThatWasBusyAtTheGraphsEndGoesBackAtTheNextCapture)
{
    test::Machine machine({.runs_at_once = false});
    const auto make_pool = [&] { return GraphPool::make(machine.device, 0); };
    const Ref<GraphPool> first = make_pool();
    first->serve_thread();
    Block *block = allocate_block(machine.device, 100 * kMiB, 0);
    first->stop_serving_thread();
    machine.hollow.use(nullptr, block->address, block->size);  // a replay
    free_block(machine.device, block);
    first->let_go();
    EXPECT_EQ(machine.hollow.memory().range_count(), 1u);
    machine.hollow.work().finish();
    const Ref<GraphPool> second = make_pool();
    EXPECT_EQ(machine.hollow.memory().range_count(), 0u);
    second->let_go();
}

TEST(GraphPools, ACacheIsEmptiedOfWhatWaitedWhileAThreadCaptures)
{
    test::Machine machine({});
    Device &device = machine.device;
    const Ref<Stream> other = make_stream(device, 0);
    free_block(device, allocate_block(device, 100 * kMiB, 0), lane_bit(other->lane.id));
    const Ref<GraphPool> pool = GraphPool::make(device, 0);
    pool->serve_thread();
    empty_cache(&device);
    EXPECT_EQ(memory_stats(device).reserved, 0);
    pool->stop_serving_thread();
    pool->let_go();
}

TEST(GraphPools, TheLastBlockTakesTheMemoryOfItsGraphAlong)
{
    test::Machine machine({});
    const Ref<GraphPool> pool = GraphPool::make(machine.device, 0);
    pool->serve_thread();
    Block *block = allocate_block(machine.device, 100 * kMiB, 0);
    pool->stop_serving_thread();
    pool->let_go();
    EXPECT_EQ(machine.hollow.memory().range_count(), 1u);
    free_block(machine.device, block);
    EXPECT_EQ(machine.hollow.memory().range_count(), 0u);
}

}  // namespace
}  // namespace yoke
