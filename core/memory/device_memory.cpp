#include "core/memory/device_memory.h"

#include "core/base/log.h"
#include "core/device/capture.h"
#include "core/device/deferred_error.h"
#include "core/device/stream_table.h"
#include "core/memory/graph_pool.h"

namespace yoke {

void tell_wait(const Device &device, yoke_status status) noexcept
{
    if (status == YOKE_OK) return;
    try {
        defer_error(device, status, take_backend_error(status, "free"));
    } catch (const std::bad_alloc &) {
        log(LogLevel::kWarn, "%s: an earlier error was found during the wait before a free: %s",
            device.name.c_str(), status_name(status));
    }
}

Arena &DeviceMemory::make_arena(uint8_t lane, bool is_small)
{
    auto made = std::make_unique<Arena>(device_, counters_, lane, is_small, nullptr);
    const Growth::Hold hold(growth_);
    std::atomic<Arena *> &place = arenas_[is_small][lane];
    if (Arena *known = place.load(std::memory_order_relaxed)) return *known;
    Arena &arena = growth_.add(made);
    place.store(&arena, std::memory_order_release);
    return arena;
}

void DeviceMemory::wait_until_settled() noexcept
{
    std::vector<Arena::Mark> marks;
    Guards foreign;
    try {
        const Growth::Hold hold(growth_);
        marks = growth_.mark_wait();
        foreign = growth_.foreign_fences();
    } catch (const std::bad_alloc &) {
        foreign.clear();  // the blocks behind these fences go on waiting
    }
    wait_for(foreign);
    counters_.count(MemoryEvent::kSynchronize);
    tell_wait(device_, wait_for_device(device_));
    const Growth::Hold hold(growth_);
    growth_.note_waited(marks);
}

void DeviceMemory::give_back_idle() noexcept
{
    if (!device_.host && is_forked_child()) return;
    const GraphPool *pool = GraphPool::of_thread();
    if (!pool || &pool->device() != &device_) wait_until_settled();
    std::vector<std::unique_ptr<Arena>> ended;
    const Growth::Hold hold(growth_);
    growth_.give_back_idle();
    ended = growth_.take_ended();
}

void DeviceMemory::retire_graphs() noexcept
{
    std::vector<std::unique_ptr<Arena>> ended;  // destroyed after the lock is free
    const Growth::Hold hold(growth_);
    growth_.retire_gone();
    ended = growth_.take_ended();
}

void DeviceMemory::give_back(uint64_t address, uint64_t bytes) noexcept
{
    void *data = reinterpret_cast<void *>(address);
    tell_loss_of(device_, device_.backend->free(device_.handle, data, bytes), "free", bytes);
    counters_.count_reserved(bytes <= kMaxSmall ? kSmallPool : kLargePool, -1,
                             -static_cast<int64_t>(bytes));
    counters_.count(MemoryEvent::kDeviceFree);
}

bool DeviceMemory::would_end(uint64_t bytes)
{
    return group_.would_end(bytes, [this](uint64_t more) { return would_be_ended(device_, more); });
}

yoke_status DeviceMemory::obtain_bare(uint64_t bytes, Block **block) noexcept
{
    void *data = nullptr;
    if (const yoke_status status = device_.backend->alloc(device_.handle, bytes, &data))
        return status;
    counters_.count(MemoryEvent::kDeviceAlloc);
    counters_.count_reserved(bytes <= kMaxSmall ? kSmallPool : kLargePool, 1,
                             static_cast<int64_t>(bytes));
    const auto address = reinterpret_cast<uint64_t>(data);
    {
        const std::lock_guard lock(bare_mutex_);
        if (bare_.reserve(1)) *block = bare_.take();
    }
    if (!*block) {
        give_back(address, bytes);
        return set_backend_error(YOKE_E_OOM, 0, "no host memory for the record of a block");
    }
    (*block)->device = &device_;
    (*block)->address = address;
    (*block)->size = bytes;
    return YOKE_OK;
}

void DeviceMemory::release_bare(Block *block) noexcept
{
    give_back(block->address, block->size);
    const std::lock_guard lock(bare_mutex_);
    bare_.give(block);
}

DeviceMemory &make_memory(Device &device)
{
    // Growth puts fences on streams, and the stream table must not be made under Growth's lock.
    if (!device.host && device.backend->event_create) table_of(device);
    return make_once(device.memory, [&] { return new DeviceMemory(device); });
}

}  // namespace yoke
