#include "core/memory/memory.h"

#include "core/base/config.h"
#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread_state.h"
#include "core/device/free_memory.h"
#include "core/device/kinds.h"
#include "core/memory/graph_pool.h"
#include "core/memory/ladder.h"
#include "core/memory/magazines.h"
#include "core/memory/oom.h"
#include "core/memory/pinned.h"
#include "core/memory/poison.h"

namespace yoke {

namespace {

constinit Switch no_caching("YOKE_NO_CACHING");

Account *account_of(ThreadCache::Slot *slot) noexcept
{
    return slot ? &slot->account : nullptr;
}

// Returns a block of the arena, or else of the ladder. Returns null only for an optional request; without memory,
// other requests raise YOKE_E_OOM.
__attribute__((noinline)) Block *take_from_arena(DeviceMemory &memory, Arena &arena, uint64_t bytes,
                                                 uint64_t size, bool is_optional)
{
    if (Block *block = arena.take(size)) return block;
    Ladder ladder(memory, &arena, bytes, size);
    return is_optional ? ladder.climb_low() : ladder.climb();
}

// Makes the block wait behind its guards and the work given so far to other lanes; returns false on a failure.
__attribute__((noinline)) bool keep_behind_uses(Device &device, Block *block, uint16_t uses,
                                                Guards &fences) noexcept
{
    try {
        each_lane(device, uses, [&](uint8_t each) {
            if (each == block->arena->lane) return;
            if (Ref<Fence> fence = fence_behind(device, each); fence.present())
                fences.push_back(std::move(fence));
        });
        if (fences.empty())
            block->arena->give(block);
        else
            block->arena->give_behind(block, fences);
    } catch (const std::exception &error) {
        log(LogLevel::kDebug, "%s: the release of a block waits: %s", device.name.c_str(),
            error.what());
        return false;
    }
    return true;
}

// Gives a block back to its arena. Without caching idle chunks and segments go on to the backend.
__attribute__((noinline)) void give_to_arena(DeviceMemory &memory, Block *block,
                                             uint16_t uses) noexcept
{
    Device &device = memory.device();
    Arena &arena = *block->arena;
    const uint8_t lane = block->lane;
    if (lane != arena.lane) uses |= lane_bit(lane);
    Guards guards = take_guards(block->guards);
    if (uses && !keep_behind_uses(device, block, uses, guards)) {
        wait_for_uses(device, lane, uses);
        wait_for(guards);
        arena.give(block);
    } else if (!uses) {
        arena.give(block);
    }
    // A thread that switches caching off meanwhile may have looked before the block came.
    if (!no_caching.is_known_as(false)) memory.give_back_idle();
}

}  // namespace

void detail::drop_memory_cache(ThreadCache *cache) noexcept
{
    ThreadCache::drop(cache);
}

// Returns a block as allocate_block() does; an optional request gets null if memory at hand is not enough. Inline:
// every request passes here.
static inline __attribute__((always_inline)) Block *serve(Device &device, uint64_t bytes,
                                                          uint8_t lane, bool is_optional)
{
    if (bytes == 0) return nullptr;
    check_usable(device);
    DeviceMemory &memory = memory_of(device);
    if (bytes > kMaxBlock && is_optional) return nullptr;
    if (bytes > kMaxBlock) fail_oom(memory, bytes, "no device is that large");
    GraphPool *pool = GraphPool::of_thread();
    if (pool && &pool->device() != &device) pool = nullptr;
    ThreadCache::Slot *const slot = ThreadCache::slot_of_thread(device);
    Block *block = nullptr;
    if (pool || is_caching()) {
        const uint64_t size = rounded_size(bytes, device.info.alignment);
        const bool is_small = size <= kMaxSmall;
        if (is_small && !pool && slot) block = slot->take(class_index(size), size, lane);
        if (!block) {
            Arena &arena = pool ? pool->arena(is_small) : memory.arena(lane, is_small);
            block = take_from_arena(memory, arena, bytes, size, is_optional);
            if (!block) return nullptr;
        }
        unpoison(device, block->data(), size);
        block->capacity = size;
    } else {
        // Tools that watch memory see the first byte behind a block of the very size touched.
        Ladder ladder(memory, nullptr, bytes, bytes);
        block = is_optional ? ladder.climb_low() : ladder.climb();
        if (!block) return nullptr;
        block->capacity = bytes;
    }
    block->lane = lane;
    block->requested = bytes;
    memory.counters().count_alloc(account_of(slot), pool_of(*block), amounts_of(*block));
    return block;
}

Block *allocate_block(Device &device, uint64_t bytes, uint8_t lane)
{
    return serve(device, bytes, lane, false);
}

Block *try_allocate_block(Device &device, uint64_t bytes, uint8_t lane)
{
    return serve(device, bytes, lane, true);
}

// Frees a block of the backend's own, after the work on it, or a block of a graph. The graph keeps its block until
// the graph ends.
static __attribute__((noinline)) void free_other(DeviceMemory &memory, Block *block, uint16_t uses,
                                                 Account *account) noexcept
{
    const Amounts amounts = amounts_of(*block);
    const Pool kind = pool_of(*block);
    wait_for(take_guards(block->guards));
    if (!block->arena) {
        memory.counters().count_free(account, kind, amounts);
        wait_for_uses(memory.device(), block->lane, uses);
        return memory.release_bare(block);
    }
    const Ref<GraphPool> pool = block->arena->pool;  // the arena may end with its last block
    if (!pool->take_back(block, uses)) return;
    memory.counters().count_free(account, kind, amounts);
    if (pool->is_gone()) memory.retire_graphs();
}

void free_block(Device &device, Block *block, uint16_t uses) noexcept
{
    if (!block || (!device.host && is_forked_child())) return;
    DeviceMemory &memory = memory_of(device);
    Arena *const arena = block->arena;
    ThreadCache::Slot *const slot = ThreadCache::slot_of_thread(device);
    Account *const account = account_of(slot);
    if (!arena || arena->pool.present()) [[unlikely]]
        return free_other(memory, block, uses, account);
    memory.counters().count_free(account, pool_of(*block), amounts_of(*block));
    poison(device, block->data(), block->size);
    // A block from another arena may be larger than any class, or of another stream.
    if (arena->is_small && block->size <= kMaxSmall && !uses && block->lane == arena->lane && slot)
        if (slot->keep(block, class_index(block->size), arena->lane)) {
            if (no_caching.is_known_as(false)) [[likely]]
                return;
            // The thread that switched caching off may have emptied this cache before the block came.
            slot->owner->drain(&device);
            return memory.give_back_idle();
        }
    give_to_arena(memory, block, uses);
}

void wait_for_uses(Device &device, uint8_t lane, uint16_t uses) noexcept
{
    if (!device.host && is_forked_child()) return;
    const auto wait = [&device](uint8_t each) {
        tell_wait(device, synchronize_lane(device, each));
    };
    wait(lane);
    each_lane(device, uses, [&](uint8_t each) {
        if (each != lane) wait(each);
    });
}

int64_t detail::live_memory(Device &device, size_t most, std::vector<std::string> &names)
{
    if (!device.memory.load()) return 0;
    const int64_t bytes = memory_stats(device).allocated;
    if (bytes > 0 && most > 0)
        names.push_back(bytes_text(static_cast<double>(bytes)) + " of " + device.name +
                        " (memory of a graph or for backward, or raw blocks)");
    return bytes > 0;
}

MemoryStats memory_stats(Device &device)
{
    return memory_of(device).counters().read();
}

void reset_peak_memory_stats(Device &device)
{
    memory_of(device).counters().reset_peaks();
}

void count_foreign(Device &device, int64_t bytes) noexcept
{
    memory_of(device).counters().count_foreign(bytes);
}

int64_t lap_peak(Device &device)
{
    return memory_of(device).counters().lap();
}

bool would_be_ended(const Device &device, uint64_t bytes)
{
    FreeMemory free_memory;
    if (!device.host || free_memory_on(device, &free_memory) != YOKE_OK) return false;
    return free_memory.kills && bytes > free_memory.free;
}

void empty_cache(Device *device)
{
    empty_pinned_cache();
    lent.empty_snapshot_cache();
    ThreadCache::drain_all(device);
    if (device) return memory_of(*device).give_back_idle();
    for (Device *each : opened_devices()) memory_of(*each).give_back_idle();
}

void set_caching(bool enabled)
{
    no_caching.set(!enabled);
    if (!enabled) empty_cache(nullptr);
}

bool is_caching()
{
    return !no_caching.is_on();
}

}  // namespace yoke
