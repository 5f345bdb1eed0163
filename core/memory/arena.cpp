#include "core/memory/arena.h"

#include "core/memory/chunks.h"
#include "core/memory/graph_pool.h"

#include <algorithm>

namespace yoke {

Arena::Arena(Device &of, MemoryCounters &counters, uint8_t lane_id, bool small,
             Ref<GraphPool> owner)
    : device(of),
      lane(lane_id),
      is_small(small),
      pool(std::move(owner)),
      counters_(counters),
      lane_fences_(fences_of(device, lane_id))
{
}

Arena::~Arena() = default;

static void relax()
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

Arena::Lock::Lock(Mutex &mutex) noexcept : mutex_(mutex)
{
    for (int i = 0; i < 200; ++i) {
        if (mutex_.try_lock()) return;
        relax();
    }
    mutex_.lock();
}

Block *Arena::take(uint64_t size) noexcept
{
    const Lock lock(mutex_);
    if (!space_.reserve()) return nullptr;
    Block *block = space_.take(size);
    if (block) block->arena = this;
    return block;
}

Block *Arena::take_any(uint64_t size) noexcept
{
    const std::lock_guard lock(mutex_);
    if (!space_.reserve()) return nullptr;
    Block *block = space_.take_any(size);
    if (block) block->arena = this;
    return block;
}

Block *Arena::take_freed_before(uint64_t size, uint64_t fence) noexcept
{
    const std::lock_guard lock(mutex_);
    if (!space_.reserve()) return nullptr;
    Block *block = space_.take_freed_before(size, fence);
    if (block) block->arena = this;
    return block;
}

Block *Arena::take_new(uint64_t address, uint64_t bytes, uint64_t size)
{
    const std::lock_guard lock(mutex_);
    Extent &added = space_.add(address, bytes, false);
    Block *block = nullptr;
    if (space_.reserve()) {
        block = space_.take_first(added, size);
        block->arena = this;
    }
    mapped += bytes;
    return block;
}

void Arena::settle(Block *block) noexcept
{
    block->freed_at = ++clock_;
    block->freed_behind = lane_fences_.load();
    space_.give(block);
}

void Arena::settle_waiting(const std::list<Waiting> &waiting) noexcept
{
    for (const Waiting &each : waiting) {
        counters_.count_waiting(pool_of(*each.block), -amounts_of(*each.block));
        settle(each.block);
    }
}

void Arena::give(Block *block) noexcept
{
    const Lock lock(mutex_);
    settle(block);
}

void Arena::give_behind(Block *block, Guards &fences)
{
    std::list<Waiting> added(1, {block, {}});
    added.front().fences.swap(fences);
    const std::lock_guard lock(mutex_);
    waiting_.splice(waiting_.end(), added);
    counters_.count_waiting(pool_of(*block), amounts_of(*block));
}

size_t Arena::admit_reached() noexcept
{
    std::list<Waiting> asked, reached;
    {
        const std::lock_guard lock(mutex_);
        asked.swap(waiting_);
    }
    for (auto each = asked.begin(); each != asked.end();) {
        const auto next = std::next(each);
        if (drop_reached(each->fences)) reached.splice(reached.end(), asked, each);
        each = next;
    }
    const std::lock_guard lock(mutex_);
    settle_waiting(reached);
    waiting_.splice(waiting_.begin(), asked);
    return reached.size();
}

// Returns the last fence of each stream among the fences of the blocks, and all fences without a stream.
static Guards latest_of(const std::list<Arena::Waiting> &waiting)
{
    Guards latest;
    for (const Arena::Waiting &each : waiting)
        for (const Ref<Fence> &fence : each.fences) {
            const auto same = std::ranges::find_if(latest, [&](const Ref<Fence> &known) {
                return known->lane && known->lane == fence->lane;
            });
            if (same == latest.end())
                latest.push_back(fence);
            else if (fence->is_behind(**same))
                *same = fence;
        }
    return latest;
}

// Makes the lane wait for the fence; returns false if this is impossible. A wait for another backend would block the
// calling thread, so such a fence is only asked.
static bool comes_behind(Device &device, uint8_t lane, const Fence &fence) noexcept
{
    try {
        if (is_left_behind(fence)) return true;
        if (fence.device.backend != device.backend) return is_reached(fence);
        wait_fence(device, lane, fence);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

size_t Arena::admit_all()
{
    std::list<Waiting> all, kept;
    {
        const std::lock_guard lock(mutex_);
        all.swap(waiting_);
    }
    if (all.empty()) return 0;
    const auto put_back = [this](std::list<Waiting> &blocks) {
        const std::lock_guard lock(mutex_);
        waiting_.splice(waiting_.begin(), blocks);
    };
    Guards failed;
    try {
        failed = latest_of(all);
    } catch (...) {
        put_back(all);
        throw;
    }
    std::erase_if(failed,
                  [&](const Ref<Fence> &fence) { return comes_behind(device, lane, *fence); });
    const auto has_failed = [&](const Ref<Fence> &fence) {
        return std::ranges::any_of(failed, [&](const Ref<Fence> &each) {
            return each.get() == fence.get() || each->is_behind(*fence);
        });
    };
    for (auto each = all.begin(); each != all.end();) {
        const auto next = std::next(each);
        if (std::ranges::any_of(each->fences, has_failed)) kept.splice(kept.end(), all, each);
        each = next;
    }
    put_back(kept);
    const std::lock_guard lock(mutex_);
    settle_waiting(all);
    return all.size();
}

Guards Arena::foreign_fences()
{
    Guards foreign;
    const std::lock_guard lock(mutex_);
    for (const Waiting &each : waiting_)
        for (const Ref<Fence> &fence : each.fences)
            if (fence->device.backend != device.backend) foreign.push_back(fence);
    return foreign;
}

template <class F>
void Arena::each_user(const F &f) const
{
    f(lane);
    each_lane(device, uses_.load(std::memory_order_relaxed), [&](uint8_t each) {
        if (each != lane) f(each);
    });
}

void Arena::order_behind(uint8_t waiting_lane)
{
    each_user([&](uint8_t each) {
        if (each == waiting_lane) return;
        if (const Ref<Fence> fence = fence_behind(device, each); fence.present())
            wait_fence(device, waiting_lane, *fence);
    });
}

uint64_t Arena::settled_at() noexcept
{
    if (device.host) return UINT64_MAX;
    const auto each_fence = [this](const auto &add) {
        each_user([&](uint8_t each) {
            if (Ref<Fence> fence = fence_behind(device, each); fence.present())
                add(std::move(fence));
        });
    };
    try {
        for (int tries = 0; tries < 2 && settled_.ask_fences(); ++tries) {
            uint64_t clock = 0;
            {
                const std::lock_guard lock(mutex_);
                clock = clock_;
            }
            if (settled_.last() >= clock) break;
            settled_.ask(clock, each_fence);
        }
        settled_.ask_fences();
    } catch (const std::exception &) {
        settled_.give_up();
    }
    return settled_.last();
}

Arena::Mark Arena::mark() noexcept
{
    const std::lock_guard lock(mutex_);
    return {id, clock_, settled_.forgets()};
}

void Arena::note_waited(const Mark &mark) noexcept
{
    settled_.note_waited(mark.clock, mark.forgets);
}

void Arena::forget_settled() noexcept
{
    settled_.forget();
}

// Reserves memory for a further block; returns false without host memory.
static bool make_room(std::vector<Block *> &blocks) noexcept
{
    if (blocks.size() < blocks.capacity()) return true;
    try {
        blocks.reserve(2 * blocks.size() + 8);
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

std::vector<Block *> Arena::cut_chunks(const Chunks &chunks, uint64_t settled, uint64_t most,
                                       uint64_t unit)
{
    std::vector<Block *> runs, cut;
    const std::lock_guard lock(mutex_);
    space_.free().each(unit, [&](Block &run) {
        if (run.extent->is_range && run.freed_at <= settled) runs.push_back(&run);
        return true;
    });
    // Few of the runs are wanted, so they are not sorted.
    std::ranges::make_heap(runs, {}, &Block::address);
    while (!runs.empty() && most >= unit) {
        std::ranges::pop_heap(runs, {}, &Block::address);
        Block *const run = runs.back();
        runs.pop_back();
        const uint64_t begin = run->address;
        uint64_t end = run->end();
        while (most >= unit) {
            const Chunk *chunk = chunks.last_within(begin, end);
            if (!chunk) break;
            end = chunk->address;
            if (chunk->bytes > most) continue;
            if (!make_room(cut) || !space_.reserve()) return cut;
            // The run keeps its descriptor, in front of the cut piece.
            Block *const piece = space_.cut_free(run, chunk->address, chunk->bytes);
            piece->arena = this;
            cut.push_back(piece);
            most -= chunk->bytes;
            if (piece == run) break;
        }
    }
    return cut;
}

std::vector<Arena::Segment> Arena::cut_segments(uint64_t settled, uint64_t wanted)
{
    std::vector<Segment> cut;
    std::vector<Extent *> idle;
    const bool wants_all = wanted == kAll;
    const std::lock_guard lock(mutex_);
    for (const auto &extent : space_.extents())
        if (!extent->is_range && space_.is_idle(*extent) && extent->first->freed_at <= settled &&
            (wants_all || extent->bytes / 2 <= wanted))
            idle.push_back(extent.get());
    std::ranges::sort(idle, {}, [](const Extent *each) { return each->first->freed_at; });
    uint64_t all = 0;
    for (const Extent *extent : idle) all += extent->bytes;
    if (!wants_all && all < wanted / 8) return cut;
    cut.reserve(idle.size());
    uint64_t sum = 0;
    for (Extent *extent : idle) {
        if (sum >= wanted) break;
        sum += extent->bytes;
        cut.push_back({extent->address, extent->bytes});
        space_.remove(*extent);
    }
    return cut;
}

void Arena::make_hole(Block *block) noexcept
{
    const std::lock_guard lock(mutex_);
    space_.make_hole(block);
}

}  // namespace yoke
