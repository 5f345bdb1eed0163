#include "core/memory/backend_memory.h"

#include "core/device/free_memory.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/poison.h"

namespace yoke {

yoke_status fail_ended() noexcept
{
    return set_backend_error(YOKE_E_OOM, 0,
                             "the kernel would kill a process that touches this memory");
}

yoke_status BackendMemory::obtain(Pool pool, uint64_t bytes, void **data) noexcept
{
    const yoke_status status = device_.backend->alloc(device_.handle, bytes, data);
    if (status == YOKE_OK) {
        counters_.count(MemoryEvent::kDeviceAlloc);
        counters_.count_reserved(pool, 1, static_cast<int64_t>(bytes));
    }
    return status;
}

void BackendMemory::release(Pool pool, uint64_t address, uint64_t bytes) noexcept
{
    void *data = reinterpret_cast<void *>(address);
    unpoison(device_, data, bytes);
    losses_.note(device_.backend->free(device_.handle, data, bytes), "free", bytes);
    counters_.count(MemoryEvent::kDeviceFree);
    counters_.count_reserved(pool, -1, -static_cast<int64_t>(bytes));
}

bool BackendMemory::exceeds_threshold(uint64_t bytes) const
{
    const double threshold = alloc_conf().garbage_collection_threshold;
    uint64_t free = 0, total = 0;
    if (threshold == 0 || device_.backend->mem_info(device_.handle, &free, &total) != YOKE_OK)
        return false;
    const auto reserved = static_cast<double>(counters_.read().reserved);
    return reserved + static_cast<double>(bytes) > threshold * static_cast<double>(total);
}

yoke_status BackendMemory::ask(uint64_t bytes)
{
    if (!device_.host) {
        uint64_t free = 0, total = 0;
        if (device_.backend->mem_info(device_.handle, &free, &total) != YOKE_OK || bytes <= free)
            return YOKE_OK;
        return set_backend_error(YOKE_E_OOM, 0, "the device has less free memory");
    }
    if (would_be_ended(device_, bytes)) return fail_ended();
    if (bytes <= kMostChunk) return YOKE_OK;
    const yoke_backend &backend = *device_.backend;
    void *trial = nullptr;
    if (const yoke_status status = backend.alloc(device_.handle, bytes, &trial)) return status;
    return backend.free(device_.handle, trial, bytes);
}

}  // namespace yoke
