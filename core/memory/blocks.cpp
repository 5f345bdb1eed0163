#include "core/memory/blocks.h"

#include "core/base/fork.h"
#include "core/base/log.h"
#include "core/device/capture.h"
#include "core/device/late.h"
#include "core/memory/poison.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace yoke {

BlockStack::~BlockStack()
{
    free(items_);
}

bool BlockStack::push(void *block) noexcept
{
    if (count_ == capacity_) {
        const size_t capacity = capacity_ ? 2 * capacity_ : 8;
        void *items = realloc(items_, capacity * sizeof(void *));
        if (!items) return false;
        items_ = static_cast<void **>(items);
        capacity_ = capacity;
    }
    items_[count_++] = block;
    return true;
}

Arena *DeviceMemory::arena_of(uint8_t lane, bool make) noexcept
{
    for (const auto &arena : arenas_)
        if (arena->lane == lane) return arena.get();
    if (!make) return nullptr;
    std::unique_ptr<Arena> arena(new (std::nothrow) Arena);
    if (!arena) return nullptr;
    arena->lane = lane;
    try {
        arenas_.push_back(std::move(arena));
    } catch (const std::bad_alloc &) {
        return nullptr;  // the block then goes back to the backend
    }
    return arenas_.back().get();
}

void *DeviceMemory::take(int index, uint8_t lane) noexcept
{
    const std::lock_guard lock(mutex_);
    Arena *arena = arena_of(lane, false);
    return arena ? arena->classes[index].pop() : nullptr;
}

bool DeviceMemory::keep(void *block, int index, uint8_t lane) noexcept
{
    const std::lock_guard lock(mutex_);
    Arena *arena = arena_of(lane, true);
    return arena && arena->classes[index].push(block);
}

void *DeviceMemory::take_fenced(int index, uint8_t lane)
{
    if (fenced_.load(std::memory_order_relaxed) == 0) [[likely]]
        return nullptr;
    FencedBlock taken{};
    {
        const std::lock_guard lock(mutex_);
        Arena *arena = arena_of(lane, false);
        if (!arena) return nullptr;
        const auto of_class = [index](const FencedBlock &each) { return each.index == index; };
        const auto found = std::find_if(arena->fenced.begin(), arena->fenced.end(), of_class);
        if (found == arena->fenced.end()) return nullptr;
        taken = std::move(*found);
        arena->fenced.erase(found);
        fenced_.fetch_sub(1, std::memory_order_relaxed);
    }
    try {
        for (const Ref<Fence> &fence : taken.fences) wait_fence(device_, lane, fence);
    } catch (...) {
        // The device has failed; nothing that is given to it will run.
        release(taken.block, index_size(index));
        throw;
    }
    return taken.block;
}

void DeviceMemory::keep_fenced(FencedBlock &&block, uint8_t lane)
{
    const std::lock_guard lock(mutex_);
    Arena *arena = arena_of(lane, true);
    if (!arena) throw std::bad_alloc();
    arena->fenced.push_back(std::move(block));
    fenced_.fetch_add(1, std::memory_order_relaxed);
}

yoke_status DeviceMemory::obtain(uint64_t size, void **block) noexcept
{
    const yoke_status status = device_.backend->alloc(device_.handle, size, block);
    if (status == YOKE_OK) {
        const auto bytes = static_cast<int64_t>(size);
        raise_peak(max_reserved_, reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    }
    return status;
}

void DeviceMemory::release(void *block, uint64_t size) noexcept
{
    unpoison(device_, block, size);
    const yoke_status status = device_.backend->free(device_.handle, block, size);
    if (status != YOKE_OK && !tell_loss(device_, status, "free"))
        log(LogLevel::kError, "%s: a block of %llu bytes could not be given back: %s",
            device_.name.c_str(), static_cast<unsigned long long>(size), status_name(status));
    reserved_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
}

void tell_wait(const Device &device, yoke_status status) noexcept
{
    if (status == YOKE_OK) return;
    try {
        keep_late_failure(device, status, take_backend_error(status, "free"));
    } catch (const std::bad_alloc &) {
        log(LogLevel::kWarn, "%s: found while waiting before a free: %s", device.name.c_str(),
            status_name(status));
    }
}

void DeviceMemory::give_back(void *block, uint64_t size, uint8_t lane) noexcept
{
    tell_wait(device_, synchronize_lane(device_, lane));
    release(block, size);
}

void DeviceMemory::flush() noexcept
{
    if (!device_.host && is_forked_child()) return;
    std::vector<std::unique_ptr<Arena>> arenas;
    {
        const std::lock_guard lock(mutex_);
        arenas.swap(arenas_);
        fenced_.store(0, std::memory_order_relaxed);
    }
    // After the swap: what is freed from here on waits in new arenas.
    tell_wait(device_, wait_for_device(device_));
    for (const auto &arena : arenas) {
        for (int index = 0; index < kClasses; ++index)
            while (void *block = arena->classes[index].pop()) release(block, index_size(index));
        for (const FencedBlock &each : arena->fenced) release(each.block, index_size(each.index));
    }
}

bool ThreadCache::Bin::grow() noexcept
{
    const uint32_t wanted = capacity ? 2 * capacity : 16;
    auto *longer = static_cast<void **>(realloc(items, wanted * sizeof(void *)));
    if (!longer) return false;
    items = longer;
    capacity = wanted;
    return true;
}

void ThreadCache::free_lists() noexcept
{
    for (Slot &slot : slots)
        for (Bin &bin : slot.bins) {
            free(bin.items);
            bin = {};
        }
}

void ThreadCache::drain_bin(Slot &slot, int index) noexcept
{
    DeviceMemory &memory = memory_of(*slot.device);
    Bin &bin = slot.bins[index];
    const uint64_t size = index_size(index);
    while (bin.count) {
        void *block = bin.items[--bin.count];
        const auto lane = static_cast<uint8_t>(bin.lane);
        if (!memory.keep(block, index, lane)) memory.give_back(block, size, lane);
        slot.bytes -= size;
    }
}

void ThreadCache::drain(const Device *device) noexcept
{
    for (Slot &slot : slots) {
        if (!slot.device || (device && slot.device != device)) continue;
        if (!slot.device->host && is_forked_child()) continue;
        for (int index = 0; index < kSmallClasses; ++index) drain_bin(slot, index);
    }
}

DeviceMemory &make_memory(Device &device)
{
    return make_once(device.memory, [&] { return new DeviceMemory(device); });
}

}  // namespace yoke
