#include "core/memory/pinned.h"

#include "core/backend/registry.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/device/deferred_error.h"
#include "core/memory/guards.h"
#include "core/memory/memory.h"
#include "core/memory/sizes.h"
#include "core/select/select.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

namespace yoke {

namespace {

// A page: less is not pinned.
constexpr uint64_t kPage = 4096;

// Blocks without a user. Made while the library is loaded, never freed; see raw.cpp.
struct PinnedPool {
    Mutex mutex{LockRank::kMemory};
    std::vector<PinnedBlock *> waiting;
};
PinnedPool &pool = immortal<PinnedPool>();

// Returns a waiting block of that size whose copies are done, or null. The events are asked outside of the lock, so
// the blocks are taken out for as long.
PinnedBlock *take_waiting(const Device &device, uint64_t capacity)
{
    std::vector<PinnedBlock *> candidates;
    {
        const std::lock_guard lock(pool.mutex);
        const auto fits = [&](const PinnedBlock *block) {
            return block->capacity == capacity && block->device->backend == device.backend;
        };
        candidates.reserve(pool.waiting.size());  // before any is in neither of the two
        std::copy_if(pool.waiting.begin(), pool.waiting.end(), std::back_inserter(candidates),
                     fits);
        std::erase_if(pool.waiting, fits);
    }
    PinnedBlock *found = nullptr;
    for (PinnedBlock *&block : candidates)
        if (!found && drop_reached(block->fences)) std::swap(found, block);
    for (PinnedBlock *block : candidates)
        if (block) free_pinned(block);
    return found;
}

void give_back(PinnedBlock *block) noexcept
{
    Device &device = *block->device;
    if (device.host || !is_forked_child()) {
        const yoke_backend &backend = *device.backend;
        wait_for(block->fences);
        const yoke_status status = backend.host_free(device.handle, block->data, block->capacity);
        if (status != YOKE_OK && !tell_loss(device, status, "host_free"))
            log(LogLevel::kError, "%s: %llu bytes of pinned memory could not be released",
                device.name.c_str(), static_cast<unsigned long long>(block->capacity));
    }
    delete block;
}

}  // namespace

PinnedBlock *allocate_pinned(Device &device, uint64_t bytes)
{
    check_usable(device);
    if (!device.backend->host_alloc)
        fail(YOKE_E_UNSUPPORTED, "%s has no pinned memory", device.kind());
    if (bytes > kMaxBlock)
        fail(YOKE_E_OOM, "%llu bytes of pinned memory were requested, more than any machine has",
             static_cast<unsigned long long>(bytes));
    const uint64_t capacity = rounded_to_class(bytes, kPage);
    if (PinnedBlock *known = take_waiting(device, capacity)) return known;
    std::unique_ptr<PinnedBlock> block(new PinnedBlock{&device, nullptr, capacity});
    yoke_status status = device.backend->host_alloc(device.handle, capacity, &block->data);
    if (status == YOKE_E_OOM) {
        empty_cache(devices_of(kHostKind).front());
        status = device.backend->host_alloc(device.handle, capacity, &block->data);
    }
    check_backend(status, "pinned memory", device.name.c_str());
    return block.release();
}

namespace {

void add_fence(PinnedBlock &block, Ref<Fence> fence)
{
    constexpr size_t kMostUnasked = 16;
    for (Ref<Fence> &known : block.fences) {
        if (known.get() == fence.get() || known->is_behind(*fence)) return;
        if (fence->is_behind(*known)) {
            known = std::move(fence);
            return;
        }
    }
    block.fences.push_back(std::move(fence));
    // Events of scripts are of no lane.
    if (block.fences.size() >= kMostUnasked && std::has_single_bit(block.fences.size()))
        drop_reached(block.fences);
}

}  // namespace

void use_pinned(PinnedBlock &block, Ref<Fence> fence)
{
    const std::lock_guard lock(block.mutex);
    add_fence(block, std::move(fence));
}

void use_pinned(PinnedBlock &block, Device &device)
{
    // The lock covers both steps, so fences come in the order of their lane.
    const std::lock_guard lock(block.mutex);
    if (Ref<Fence> fence = fence_behind(device, memory_lane(device)); fence.present())
        add_fence(block, std::move(fence));
}

void free_pinned(PinnedBlock *block) noexcept
{
    try {
        if (is_caching()) {
            const std::lock_guard lock(pool.mutex);
            pool.waiting.push_back(block);
            return;
        }
    } catch (const std::exception &error) {
        log(LogLevel::kDebug, "a pinned block is not kept: %s", error.what());
    }
    give_back(block);
}

void drop_pinned(void *block)
{
    free_pinned(static_cast<PinnedBlock *>(block));
}

void empty_pinned_cache() noexcept
{
    std::vector<PinnedBlock *> waiting;
    {
        const std::lock_guard lock(pool.mutex);
        waiting.swap(pool.waiting);
    }
    for (PinnedBlock *block : waiting) give_back(block);
}

Device &pinning_device()
{
    const auto pins = [](const Device &device) {
        return !device.host && device.backend->host_alloc;
    };
    if (Device &current = current_device(); pins(current)) return current;
    for (Device *device : opened_devices())
        if (pins(*device)) return *device;
    return *devices_of(kHostKind).front();
}

}  // namespace yoke
