// owner.h: blocks that belong to a graph, whose launches name them by address: they stay where they are for as long as
// the graph can be replayed.
//
// While a graph is captured, its thread's requests for the graph's device are served from here: first from what the
// capture itself has freed again (its launches run in one order, so that is safe), then from the allocator. After the
// capture a freed block waits unused; when the graph is gone it goes back to the allocator, at once or when its last
// tensor does.
#pragma once

#include "core/base/refcount.h"
#include "core/memory/memory.h"

#include <unordered_map>
#include <vector>

namespace yoke {

class Storage;

class BlockOwner final : public RefCounted {
public:
    BlockOwner(Device &device, uint8_t lane);

    // The calling thread's requests come here from now on, or no longer.
    void serve_thread();
    void stop_serving_thread();
    static BlockOwner *of_thread() noexcept
    {
        const ThreadState *state = known_thread_state();
        return state ? state->block_owner : nullptr;
    }

    Device &device() const noexcept { return device_; }
    // As allocate_block; the capacity is marked, so that free_block finds its way back.
    void *allocate(uint64_t bytes, uint64_t *capacity);
    // Whose memory a block is, until it is given back.
    void note_storage(void *block, Storage *storage) noexcept;
    // f(storage) for each that lives: a replay writes them all.
    template <class F>
    void each_storage(const F &f) noexcept
    {
        const std::lock_guard lock(mutex_);
        for (auto &[block, record] : blocks_)
            if (record.storage) f(*record.storage);
    }
    // Whether a tensor lives in a block of this owner's.
    bool owns(const void *block) noexcept;
    // A replay on that lane uses the blocks: its end is waited for before they serve anybody else.
    void note_use(uint8_t lane) noexcept;
    // The graph is gone: nothing names the blocks any more.
    void let_go() noexcept;

    static bool is_marked(uint64_t capacity) noexcept { return capacity >> 63; }
    // For free_block.
    static void take_back(void *block, uint16_t uses) noexcept;

private:
    struct Block {
        uint64_t capacity;  // as the allocator gave it
        uint16_t uses;      // by others than replays, as free_block takes them
        bool live;
        Storage *storage;  // null until it is noted
    };
    void give(void *block, uint16_t uses) noexcept;
    void forget(void *block) noexcept;

    Device &device_;
    const uint8_t lane_;
    std::atomic<uint16_t> uses_{0};  // by replays
    Mutex mutex_{LockRank::kBlocks};
    bool capturing_ = true, gone_ = false;
    std::unordered_map<void *, Block> blocks_;
    std::vector<void *> free_;
};

}  // namespace yoke
