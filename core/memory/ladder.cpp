#include "core/memory/ladder.h"

#include "core/base/lent.h"
#include "core/base/text.h"
#include "core/device/room.h"
#include "core/memory/graph_pool.h"
#include "core/memory/magazines.h"
#include "core/memory/pinned.h"
#include "core/memory/relief.h"

namespace yoke {

static std::string human(int64_t bytes)
{
    return human_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

[[noreturn]] __attribute__((cold)) void fail_oom(DeviceMemory &memory, uint64_t bytes,
                                                 const std::string &reason)
{
    const Device &device = memory.device();
    const MemoryStats stats = memory.counters().read();
    Room room;
    std::string left = "how much is free is not known", remedy;
    if (room_on(device, &room) == YOKE_OK)
        left = human_bytes(room.free) + " of " + human_bytes(room.total) + " are free" +
               (room.limit.empty() ? "" : " within " + room.limit);
    if (!room.limit.empty())
        remedy = room.kills ? "raise that limit (docker run --memory=…, MemoryMax= of systemd), "
                            : "raise that limit (ulimit -v unlimited, or -d), ";
    if (stats.allocated > 0) remedy += "drop tensors that are no longer needed, ";
    throw Error(
        YOKE_E_OOM,
        format(
            "no memory on %s: %s (%llu bytes) were asked for; this process has %s allocated and %s reserved there, %s; %suse a smaller batch, or let autocast keep activations in halves (%s)",
            device.name.c_str(), human_bytes(bytes).c_str(), static_cast<unsigned long long>(bytes),
            human(stats.allocated).c_str(), human(stats.reserved).c_str(), left.c_str(),
            remedy.c_str(), reason.c_str()),
        0, device.name);
}

bool Ladder::is_capturing() const noexcept
{
    const GraphPool *pool = GraphPool::of_thread();
    return pool && &pool->device() == &memory_.device();
}

bool Ladder::try_cheap()
{
    if (!arena_) return false;
    Growth &growth = memory_.growth();
    {
        const Growth::Hold hold(growth);
        if ((block_ = growth.take_used(*arena_, size_))) return true;
    }
    // Blocks of a few kilobytes that wait in magazines hold whole chunks.
    ThreadCache *cache = arena_->is_small ? ThreadCache::of_thread() : nullptr;
    if (!cache || cache->bytes_of(memory_.device()) < size_) return false;
    cache->drain(&memory_.device());
    return (block_ = arena_->take(size_)) != nullptr;
}

bool Ladder::try_grow()
{
    yoke_status status = YOKE_OK;
    const Device &device = memory_.device();
    if (arena_) {
        const Growth::Hold hold(memory_.growth());
        status = memory_.growth().grow(*arena_, size_, &block_);
    } else if (size_ >= kWorthALook && would_be_ended(device, size_)) {
        status = fail_ended();
    } else {
        status = memory_.obtain_bare(size_, &block_);
    }
    if (block_) return true;
    const std::string where = "alloc on " + device.name;
    if (status != YOKE_E_OOM) check_backend(status, where.c_str(), device.name.c_str());
    reason_ = status == YOKE_OK ? "no host memory to note a block"
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
    ThreadCache::drain_all(&device);
    if (arena_ && (block_ = arena_->take_any(size_))) return true;
    if (!is_capturing()) {
        memory_.wait_until_settled();
        if (try_grow() || try_waits()) return true;
    }
    empty_pinned_cache();
    lent.empty_snapshot_cache();
    memory_.give_back_idle();
    return try_grow() || try_waits();
}

bool Ladder::ask_host()
{
    Device &device = memory_.device();
    if (ask_for_relief(ReliefKind::kCollector, device, bytes_) && press()) return true;
    for (int i = 0; i < kAsks && ask_for_relief(ReliefKind::kCallback, device, bytes_); ++i)
        if (press()) return true;
    return false;
}

Block *Ladder::climb()
{
    if (try_cheap() || try_grow() || try_waits() || press() || ask_host()) return block_;
    fail_oom(memory_, bytes_, reason_);
}

}  // namespace yoke
