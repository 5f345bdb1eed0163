#include "core/memory/graph_pool.h"

#include "core/base/thread_state.h"
#include "core/memory/device_memory.h"

namespace yoke {

Ref<GraphPool> GraphPool::make(Device &device, uint8_t lane)
{
    const auto pool = Ref<GraphPool>::adopt(new GraphPool(device, lane));
    DeviceMemory &memory = memory_of(device);
    auto small = std::make_unique<Arena>(device, memory.counters(), lane, true, pool);
    auto large = std::make_unique<Arena>(device, memory.counters(), lane, false, pool);
    pool->small_ = small.get();
    pool->large_ = large.get();
    memory.retire_graphs();
    Growth &growth = memory.growth();
    const Growth::Hold hold(growth);
    growth.add(small);
    growth.add(large);
    return pool;
}

void GraphPool::serve_thread()
{
    thread_state().graph_pool = this;
}

void GraphPool::stop_serving_thread()
{
    thread_state().graph_pool = nullptr;
    is_capturing_ = false;
}

void GraphPool::note_storage(Block &block, Storage *storage) noexcept
{
    block.arena->with_space([&](Space &) { block.storage = storage; });
}

bool GraphPool::take_back(Block *block, uint16_t uses) noexcept
{
    Arena &arena = *block->arena;
    if (block->lane != arena.lane) uses |= lane_bit(block->lane);
    if (uses) arena.note_use(uses);
    return arena.with_space([&](Space &) {
        block->storage = nullptr;
        const bool serves = is_capturing_ || is_gone_;
        if (serves)
            arena.settle(block);
        else
            block->is_kept = true;
        return serves;
    });
}

void GraphPool::note_use(uint8_t lane) noexcept
{
    if (lane == lane_) return;
    small_->note_use(lane_bit(lane));
    large_->note_use(lane_bit(lane));
}

void GraphPool::let_go() noexcept
{
    DeviceMemory &memory = memory_of(device_);
    give_up(memory);
    memory.retire_graphs();
}

void GraphPool::give_up(DeviceMemory &memory) noexcept
{
    const Growth::Hold hold(memory.growth());
    for (Arena *arena : {small_, large_}) {
        arena->forget_settled();  // replays may use what was free at the last wait
        arena->with_space([&](Space &space) {
            is_gone_.store(true, std::memory_order_release);
            Block *kept = nullptr;
            for (const auto &extent : space.extents())
                for (Block *block = extent->first; block; block = block->behind)
                    if (block->is_kept) {
                        block->child = kept;
                        kept = block;
                    }
            Amounts freed[2];
            while (kept) {
                Block *const next = kept->child;
                kept->is_kept = false;
                freed[pool_of(*kept)] += amounts_of(*kept);
                arena->settle(kept);
                kept = next;
            }
            for (const Pool pool : {kSmallPool, kLargePool})
                if (freed[pool].count) memory.counters().count_free(nullptr, pool, freed[pool]);
        });
    }
}

}  // namespace yoke
