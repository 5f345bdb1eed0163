// hollow_memory.h: addresses of a hollow device: plain blocks, ranges, chunks and maps, and no byte behind any of them.
// Each address is given once, so that a use after free is found.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace yoke {

class HollowMemory {
public:
    static constexpr uint64_t kFirst = uint64_t{1} << 44;  // beyond all host addresses

    // Makes memory of `capacity` bytes. `unit` divides the sizes of ranges and chunks; `alignment` is that of plain
    // blocks. Both are powers of two.
    HollowMemory(uint64_t capacity, uint64_t unit, uint64_t alignment);

    // Give and take back plain blocks, ranges and chunks, and map chunks. Each function returns the reason of a
    // refusal, or "". After a refused alloc or create, is_short() returns whether the reason was a shortage.
    std::string alloc(uint64_t bytes, uint64_t *address);
    std::string free(uint64_t address, uint64_t bytes);
    std::string reserve(uint64_t bytes, uint64_t *address);
    std::string release(uint64_t address, uint64_t bytes);
    std::string create(uint64_t bytes, uint64_t *chunk);
    std::string destroy(uint64_t chunk);
    std::string map(uint64_t address, uint64_t bytes, uint64_t chunk);
    std::string unmap(uint64_t address, uint64_t bytes);
    bool is_short() const { return is_short_; }

    uint64_t capacity() const { return capacity_; }
    uint64_t used() const { return used_; }  // bytes of blocks and chunks
    uint64_t unit() const { return unit_; }
    size_t block_count() const { return blocks_.size(); }
    size_t range_count() const { return ranges_.size(); }
    size_t chunk_count() const { return chunks_.size(); }

    // Returns whether all these bytes may be used: they lie in a plain block, or chunks are mapped there.
    bool is_backed(uint64_t address, uint64_t bytes) const;

private:
    struct Chunk {
        uint64_t bytes;
        uint64_t place;  // 0: not mapped
    };
    using Extents = std::map<uint64_t, uint64_t>;  // bytes by first address
    std::string take(uint64_t bytes);
    std::string check_size(uint64_t bytes, const char *what) const;
    uint64_t new_address(uint64_t bytes, uint64_t alignment);
    // Returns the chunk mapped at the greatest address below `end` if the chunk reaches beyond `begin`, else null.
    const Chunk *mapped_in(uint64_t begin, uint64_t end) const;

    const uint64_t capacity_, unit_, alignment_;
    uint64_t used_ = 0, next_address_ = kFirst, last_chunk_ = 0;
    bool is_short_ = false;
    Extents blocks_, ranges_;
    std::map<uint64_t, Chunk> chunks_;     // by number
    std::map<uint64_t, uint64_t> mapped_;  // numbers of chunks by address
};

}  // namespace yoke
