#include "core/memory/magazines.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/memory/device_memory.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdlib>
#include <mutex>

namespace yoke {

namespace {

// The thread sanitizer does not see the barrier.
#if defined(__SANITIZE_THREAD__)
constexpr bool kWantsBarrier = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kWantsBarrier = false;
#else
constexpr bool kWantsBarrier = true;
#endif
#else
constexpr bool kWantsBarrier = true;
#endif

long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

bool can_bar() noexcept
{
    return kWantsBarrier && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

// The caches of all threads. An arena's lock may be taken under the lock.
struct AllCaches {
    Mutex mutex{LockRank::kCaches};
    ThreadCache *first = nullptr;
};
AllCaches &all = immortal<AllCaches>();

// Forgets the caches of the parent's other threads in a forked child, and closes their accounts. The caches may have
// been changing at the fork, so their blocks are not used again.
void leave_lost_caches()
{
    ThreadState *state = detail::current;
    ThreadCache *own = state ? state->memory_cache : nullptr;
    for (ThreadCache *cache = all.first; cache; cache = cache->next)
        if (cache != own) cache->close_accounts();
    all.first = own;
    if (own) {
        own->next = own->before = nullptr;
        own->closed.store(false, std::memory_order_relaxed);
    }
}

const bool is_hooked = (on_fork_child(leave_lost_caches), true);

}  // namespace

const bool detail::has_membarrier = can_bar();

ThreadCache *ThreadCache::make(ThreadState &thread) noexcept
{
    auto *cache = static_cast<ThreadCache *>(calloc(1, sizeof(ThreadCache)));
    if (!cache) return nullptr;
    const std::lock_guard lock(all.mutex);
    cache->next = all.first;
    if (all.first) all.first->before = cache;
    all.first = cache;
    thread.memory_cache = cache;
    return cache;
}

ThreadCache::Slot *ThreadCache::make_slot(Device &device) noexcept
{
    auto *slot = static_cast<Slot *>(calloc(1, sizeof(Slot)));
    if (slot) {
        slot->owner = this;
        slot->device = &device;
    }
    slots[device.ordinal].store(slot, std::memory_order_release);
    return slot;
}

uint64_t ThreadCache::bytes_of(const Device &device) noexcept
{
    const Visit visit(*this);
    if (!visit) return 0;
    const Slot *slot = device.ordinal < kMaxDevices ? slots[device.ordinal].load() : nullptr;
    return slot ? slot->bytes[0] + slot->bytes[1] : 0;
}

void ThreadCache::close_accounts() noexcept
{
    for (const std::atomic<Slot *> &place : slots)
        if (Slot *const slot = place.load(std::memory_order_relaxed))
            if (DeviceMemory *memory = slot->device->memory.load(std::memory_order_acquire))
                memory->counters().close(slot->account);
}

void ThreadCache::drain_magazine(Slot &slot, int index) noexcept
{
    Magazine &magazine = slot.magazines[index];
    while (Block *block = magazine.top) {
        magazine.top = block->child;
        slot.bytes[block->size > kSmaller] -= block->size;
        block->arena->give(block);
    }
}

void ThreadCache::drain_slots(const Device *device) noexcept
{
    for (const std::atomic<Slot *> &place : slots) {
        Slot *const slot = place.load(std::memory_order_acquire);
        if (!slot || (device && slot->device != device)) continue;
        if (!slot->device->host && is_forked_child()) continue;
        for (int index = 0; index < kSmallClasses; ++index) drain_magazine(*slot, index);
    }
}

void ThreadCache::drain(const Device *device) noexcept
{
    const Visit visit(*this);
    if (visit) drain_slots(device);
}

void ThreadCache::close_and_drain(const Device *device) noexcept
{
    closed.store(true, std::memory_order_seq_cst);
    // A later filter of system calls may refuse the barrier: the owner then keeps its blocks.
    if (detail::has_membarrier && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        closed.store(false, std::memory_order_release);
        return;
    }
    while (inside.load(std::memory_order_seq_cst)) sched_yield();
    drain_slots(device);
    closed.store(false, std::memory_order_release);
}

void ThreadCache::drain_all(const Device *device) noexcept
{
    const std::lock_guard lock(all.mutex);
    for (ThreadCache *cache = all.first; cache; cache = cache->next) cache->close_and_drain(device);
}

void ThreadCache::drop(ThreadCache *cache) noexcept
{
    {
        const std::lock_guard lock(all.mutex);
        (cache->before ? cache->before->next : all.first) = cache->next;
        if (cache->next) cache->next->before = cache->before;
        cache->close_accounts();
        cache->drain_slots(nullptr);
    }
    for (const std::atomic<Slot *> &slot : cache->slots) free(slot.load());
    free(cache->recent);
    free(cache);
}

}  // namespace yoke
