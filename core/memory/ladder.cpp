#include "core/memory/ladder.h"

#include "core/base/lent.h"
#include "core/device/free_memory.h"
#include "core/memory/graph_pool.h"
#include "core/memory/magazines.h"
#include "core/memory/oom.h"
#include "core/memory/pinned.h"
#include "core/memory/relief.h"

namespace yoke {

bool Ladder::is_capturing() const noexcept
{
    const GraphPool *pool = GraphPool::of_thread();
    return pool && &pool->device() == &memory_.device();
}

// Returns whether the rung has served the request; if so, counts the rung.
bool Ladder::serves(MemoryEvent rung) noexcept
{
    if (block_) memory_.counters().count(rung);
    return block_ != nullptr;
}

bool Ladder::try_used()
{
    if (!arena_) return false;
    Growth &growth = memory_.growth();
    const Growth::Hold hold(growth);
    block_ = growth.take_used(*arena_, size_);
    return serves(MemoryEvent::kUsed);
}

// Empties the thread's magazines if they have enough bytes, then tries the arena again. Blocks of a few kilobytes in
// magazines hold whole chunks.
bool Ladder::try_own_magazines()
{
    ThreadCache *cache = arena_ && arena_->is_small ? ThreadCache::of_thread() : nullptr;
    if (!cache || cache->bytes_of(memory_.device()) < size_) return false;
    cache->drain(&memory_.device());
    block_ = arena_->take(size_);
    return serves(MemoryEvent::kMagazine);
}

bool Ladder::try_reached()
{
    if (!arena_) return false;
    const Growth::Hold hold(memory_.growth());
    block_ = memory_.growth().take_reached(*arena_, size_);
    return serves(MemoryEvent::kUsed);
}

bool Ladder::try_known()
{
    if (!arena_) return false;
    const Growth::Hold hold(memory_.growth());
    block_ = memory_.growth().take_known(*arena_, size_);
    return serves(MemoryEvent::kKnown);
}

bool Ladder::try_grow()
{
    yoke_status status = YOKE_OK;
    const Device &device = memory_.device();
    if (arena_) {
        const Growth::Hold hold(memory_.growth());
        status = memory_.growth().grow(*arena_, size_, &block_);
    } else if (memory_.would_end(size_)) {
        status = fail_ended();
    } else {
        status = memory_.obtain_bare(size_, &block_);
    }
    if (block_) return true;
    const std::string where = "alloc on " + device.name;
    if (status != YOKE_E_OOM) check_backend(status, where.c_str(), device.name.c_str());
    reason_ = status == YOKE_OK ? "no host memory for the record of a block"
                                : take_backend_error(status, where.c_str());
    return false;
}

bool Ladder::try_waits()
{
    if (!arena_) return false;
    const Growth::Hold hold(memory_.growth());
    return (block_ = memory_.growth().take_behind_waits(*arena_, size_)) != nullptr;
}

bool Ladder::press()
{
    Device &device = memory_.device();
    memory_.counters().count(MemoryEvent::kRetry);
    ThreadCache::drain_all(&device);
    pressed_to_ = MemoryEvent::kAllMagazines;
    if (arena_ && (block_ = arena_->take_any(size_))) return true;
    pressed_to_ = MemoryEvent::kSettle;
    if (!is_capturing()) {
        memory_.wait_until_settled();
        if (try_grow() || try_waits()) return true;
    }
    pressed_to_ = MemoryEvent::kGiveBack;
    empty_pinned_cache();
    lent.empty_snapshot_cache();
    memory_.give_back_idle();
    return try_grow() || try_waits();
}

bool Ladder::ask_host()
{
    Device &device = memory_.device();
    if (ask_for_relief(ReliefKind::kCollector, device, bytes_) && press())
        return serves(MemoryEvent::kCollector);
    for (int i = 0; i < kAsks && ask_for_relief(ReliefKind::kCallback, device, bytes_); ++i)
        if (press()) return serves(MemoryEvent::kCallback);
    return false;
}

Block *Ladder::climb_low()
{
    if (try_reached() || try_own_magazines()) return block_;
    if (try_grow()) return serves(MemoryEvent::kGrow), block_;
    return try_known() ? block_ : nullptr;
}

Block *Ladder::climb()
{
    if (try_used() || try_own_magazines() || try_known()) return block_;
    if (try_grow()) return serves(MemoryEvent::kGrow), block_;
    if (try_waits()) return serves(MemoryEvent::kWait), block_;
    if (press()) return serves(pressed_to_), block_;
    if (ask_host()) return block_;
    fail_oom(memory_, bytes_, reason_);
}

}  // namespace yoke
