#include "core/memory/hollow_memory.h"

#include "core/base/error.h"

#include <iterator>

namespace yoke {

namespace {

using Count = unsigned long long;

Count count(uint64_t number)
{
    return number;
}

// Returns whether [address, address + bytes) lies in a single extent.
template <class Extents>
bool lies_in(const Extents &extents, uint64_t address, uint64_t bytes)
{
    const auto behind = extents.upper_bound(address);
    if (behind == extents.begin()) return false;
    const auto &[begin, size] = *std::prev(behind);
    return address + bytes <= begin + size;
}

}  // namespace

HollowMemory::HollowMemory(uint64_t capacity, uint64_t unit, uint64_t alignment)
    : capacity_(capacity), unit_(unit), alignment_(alignment)
{
}

std::string HollowMemory::take(uint64_t bytes)
{
    is_short_ = bytes > capacity_ - used_;
    if (is_short_)
        return format("%llu bytes were requested, but %llu of %llu are free", count(bytes),
                      count(capacity_ - used_), count(capacity_));
    used_ += bytes;
    return "";
}

std::string HollowMemory::check_size(uint64_t bytes, const char *what) const
{
    if (bytes && bytes % unit_ == 0) return "";
    return format("%s of %llu bytes; the size must be a multiple of %llu", what, count(bytes),
                  count(unit_));
}

// Returns an address with a gap behind each extent, so that an overrun into the next extent is noticed.
uint64_t HollowMemory::new_address(uint64_t bytes, uint64_t alignment)
{
    const uint64_t address = (next_address_ + alignment - 1) & ~(alignment - 1);
    next_address_ = address + bytes + unit_;
    return address;
}

std::string HollowMemory::alloc(uint64_t bytes, uint64_t *address)
{
    if (std::string why = take(bytes); !why.empty()) return why;
    *address = new_address(bytes, alignment_);
    blocks_.emplace(*address, bytes);
    return "";
}

std::string HollowMemory::free(uint64_t address, uint64_t bytes)
{
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second != bytes)
        return format("no block of %llu bytes was allocated at 0x%llx", count(bytes),
                      count(address));
    used_ -= bytes;
    blocks_.erase(found);
    return "";
}

std::string HollowMemory::reserve(uint64_t bytes, uint64_t *address)
{
    is_short_ = false;
    if (std::string why = check_size(bytes, "a range"); !why.empty()) return why;
    *address = new_address(bytes, unit_);
    ranges_.emplace(*address, bytes);
    return "";
}

std::string HollowMemory::release(uint64_t address, uint64_t bytes)
{
    const auto found = ranges_.find(address);
    if (found == ranges_.end() || found->second != bytes)
        return format("no range of %llu bytes was reserved at 0x%llx", count(bytes),
                      count(address));
    if (mapped_in(address, address + bytes))
        return "a chunk is still mapped in the range to release";
    ranges_.erase(found);
    return "";
}

std::string HollowMemory::create(uint64_t bytes, uint64_t *chunk)
{
    is_short_ = false;
    if (std::string why = check_size(bytes, "a chunk"); !why.empty()) return why;
    if (std::string why = take(bytes); !why.empty()) return why;
    *chunk = ++last_chunk_;
    chunks_.emplace(*chunk, Chunk{bytes, 0});
    return "";
}

std::string HollowMemory::destroy(uint64_t chunk)
{
    const auto found = chunks_.find(chunk);
    if (found == chunks_.end()) return format("%llu is not a chunk", count(chunk));
    if (found->second.place) return format("chunk %llu is still mapped", count(chunk));
    used_ -= found->second.bytes;
    chunks_.erase(found);
    return "";
}

const HollowMemory::Chunk *HollowMemory::mapped_in(uint64_t begin, uint64_t end) const
{
    const auto behind = mapped_.lower_bound(end);
    if (behind == mapped_.begin()) return nullptr;
    const Chunk &chunk = chunks_.at(std::prev(behind)->second);
    return begin < chunk.place + chunk.bytes ? &chunk : nullptr;
}

std::string HollowMemory::map(uint64_t address, uint64_t bytes, uint64_t chunk)
{
    const auto found = chunks_.find(chunk);
    if (found == chunks_.end()) return format("%llu is not a chunk", count(chunk));
    if (found->second.place) return format("chunk %llu is already mapped elsewhere", count(chunk));
    if (found->second.bytes != bytes)
        return format("chunk %llu has %llu bytes, not %llu", count(chunk),
                      count(found->second.bytes), count(bytes));
    if (!lies_in(ranges_, address, bytes) || address % unit_)
        return format("0x%llx is not a place in a reserved range", count(address));
    if (mapped_in(address, address + bytes)) return "another chunk is mapped there";
    found->second.place = address;
    mapped_.emplace(address, chunk);
    return "";
}

std::string HollowMemory::unmap(uint64_t address, uint64_t bytes)
{
    const auto found = mapped_.find(address);
    if (found == mapped_.end() || chunks_.at(found->second).bytes != bytes)
        return format("no chunk of %llu bytes is mapped at 0x%llx", count(bytes), count(address));
    chunks_.at(found->second).place = 0;
    mapped_.erase(found);
    return "";
}

bool HollowMemory::is_backed(uint64_t address, uint64_t bytes) const
{
    if (lies_in(blocks_, address, bytes)) return true;
    for (uint64_t at = address; at < address + bytes;) {
        const Chunk *chunk = mapped_in(at, at + 1);
        if (!chunk) return false;
        at = chunk->place + chunk->bytes;
    }
    return true;
}

}  // namespace yoke
