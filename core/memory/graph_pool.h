// graph_pool.h: memory of a graph. The graph's launches name the memory by address, so the memory stays in place as
// long as the graph can be replayed.
//
// While a thread captures a graph, arenas of the graph serve the thread's requests for the graph's device. Memory
// freed by the capture itself serves the capture again, which is safe because the launches run in a fixed order.
// After the capture, a freed block is kept without a use. After the graph's end, the memory serves other callers, at
// once or after the end of the last tensor.
#pragma once

#include "core/base/refcount.h"
#include "core/memory/arena.h"

namespace yoke {

class DeviceMemory;
class Storage;

class GraphPool final : public RefCounted {
public:
    // Makes a pool. Its arenas live as long as any of their blocks or memory.
    static Ref<GraphPool> make(Device &device, uint8_t lane);

    // Serves the calling thread's requests from this pool. stop_serving_thread() ends this, and with it the capture.
    void serve_thread();
    void stop_serving_thread();
    static GraphPool *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->graph_pool : nullptr;
    }

    Device &device() const noexcept { return device_; }
    Arena &arena(bool is_small) noexcept { return is_small ? *small_ : *large_; }
    bool is_gone() const noexcept { return is_gone_.load(std::memory_order_acquire); }
    // Takes back a block of this pool; returns true if the block serves other callers from now on.
    bool take_back(Block *block, uint16_t uses) noexcept;

    // Notes the storage that uses the block as its memory, until the block comes back.
    static void note_storage(Block &block, Storage *storage) noexcept;
    // Calls f(storage) for each living storage: a replay writes all of them.
    template <class F>
    void each_storage(const F &f) noexcept
    {
        each_block([&f](Block &block) {
            if (block.storage) f(*block.storage);
        });
    }
    bool owns(const Block &block) const noexcept
    {
        return block.arena && block.arena->pool.get() == this;
    }
    // Notes that a replay on this lane uses the memory: the replay ends before the memory serves other callers.
    void note_use(uint8_t lane) noexcept;
    // Ends the pool after its graph, since no launch names the memory any more. Kept blocks become free, and idle
    // memory serves other callers.
    void let_go() noexcept;

private:
    void give_up(DeviceMemory &memory) noexcept;
    GraphPool(Device &device, uint8_t lane) : device_(device), lane_(lane) {}
    // Calls f(block) for each used block, with its arena locked.
    template <class F>
    void each_block(const F &f) noexcept
    {
        for (Arena *arena : {small_, large_})
            arena->with_space([&f](Space &space) {
                for (const auto &extent : space.extents())
                    for (Block *block = extent->first; block; block = block->behind)
                        if (block->state == BlockState::kUsed) f(*block);
            });
    }

    Device &device_;
    const uint8_t lane_;
    Arena *small_ = nullptr, *large_ = nullptr;  // the device's memory owns them
    std::atomic<bool> is_capturing_{true}, is_gone_{false};
};

}  // namespace yoke
