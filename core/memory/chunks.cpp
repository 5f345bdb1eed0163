#include "core/memory/chunks.h"

namespace yoke {

uint64_t Chunks::unit() noexcept
{
    const yoke_backend &backend = *device_.backend;
    if (unit_ == ~uint64_t{0}) {
        unit_ = 0;
        if (backend.vmm_granularity && backend.vmm_reserve)
            if (backend.vmm_granularity(device_.handle, &unit_) != YOKE_OK) unit_ = 0;
    }
    return unit_;
}

const Chunk *Chunks::last_within(uint64_t begin, uint64_t end) const noexcept
{
    auto at = mapped_.lower_bound(end);
    while (at != mapped_.begin()) {
        --at;
        const Chunk &chunk = at->second;
        if (chunk.address < begin) return nullptr;
        if (chunk.address + chunk.bytes <= end) return &chunk;
    }
    return nullptr;
}

int64_t Chunks::bytes_within(uint64_t begin, uint64_t end) const noexcept
{
    uint64_t bytes = 0;
    for (auto at = mapped_.lower_bound(begin); at != mapped_.end(); ++at) {
        const Chunk &chunk = at->second;
        if (chunk.address + chunk.bytes > end) break;
        bytes += chunk.bytes;
    }
    return static_cast<int64_t>(bytes);
}

int64_t Chunks::spare_bytes() const noexcept
{
    uint64_t bytes = 0;
    for (const auto &each : spare_) bytes += each.first;
    return static_cast<int64_t>(bytes);
}

uint64_t Chunks::lacking(uint64_t bytes) const noexcept
{
    for (auto each = spare_.rbegin(); each != spare_.rend(); ++each)
        if (each->first <= bytes) bytes -= each->first;
    return bytes;
}

yoke_status Chunks::create(uint64_t bytes)
{
    const auto place = spare_.emplace(bytes, 0);
    const yoke_status status = device_.backend->vmm_create(device_.handle, bytes, &place->second);
    if (status == YOKE_OK) {
        counters_.count(MemoryEvent::kDeviceAlloc);
        counters_.count_reserved(kLargePool, 1, static_cast<int64_t>(bytes));
    } else {
        spare_.erase(place);
    }
    return status;
}

yoke_status Chunks::map_spare(uint64_t address, uint64_t most, uint64_t *mapped)
{
    *mapped = 0;
    const auto above = spare_.upper_bound(most);
    if (above == spare_.begin()) return YOKE_OK;
    const auto found = std::prev(above);
    const Chunk chunk{address, found->first, found->second};
    mapped_.emplace(address, chunk);
    const yoke_status status = device_.backend->vmm_map(
        device_.handle, reinterpret_cast<void *>(address), chunk.bytes, chunk.id);
    if (status != YOKE_OK) {
        mapped_.erase(address);
        return status;
    }
    spare_.erase(found);
    *mapped = chunk.bytes;
    return YOKE_OK;
}

bool Chunks::unmap(uint64_t address) noexcept
{
    const auto found = mapped_.find(address);
    const Chunk chunk = found->second;
    Spare::iterator place;
    try {
        place = spare_.emplace(chunk.bytes, chunk.id);
    } catch (const std::bad_alloc &) {
        return false;
    }
    const yoke_status status =
        device_.backend->vmm_unmap(device_.handle, reinterpret_cast<void *>(address), chunk.bytes);
    if (status != YOKE_OK) {
        spare_.erase(place);
        losses_.note(status, "vmm_unmap", chunk.bytes);
        return false;
    }
    mapped_.erase(found);
    return true;
}

void Chunks::destroy_spare() noexcept
{
    for (const auto &[bytes, id] : spare_) {
        losses_.note(device_.backend->vmm_destroy(device_.handle, id), "vmm_destroy", bytes);
        counters_.count(MemoryEvent::kDeviceFree);
        counters_.count_reserved(kLargePool, -1, -static_cast<int64_t>(bytes));
    }
    spare_.clear();
}

}  // namespace yoke
