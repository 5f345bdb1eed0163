// chunks.h: chunks of a device's memory: mapped chunks with their addresses, and spare chunks. Growth's lock guards
// this class, and is held during calls of the backend.
#pragma once

#include "core/memory/counters.h"
#include "core/memory/losses.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace yoke {

struct Chunk {
    uint64_t address, bytes, id;
};

class Chunks {
public:
    Chunks(Device &device, MemoryCounters &counters, Losses &losses)
        : device_(device), counters_(counters), losses_(losses)
    {
    }
    Chunks(const Chunks &) = delete;
    Chunks &operator=(const Chunks &) = delete;

    // Returns the backend's granularity; 0 if the device has no virtual memory.
    uint64_t unit() noexcept;

    // Returns the last chunk that is mapped wholly within [begin, end), or null.
    const Chunk *last_within(uint64_t begin, uint64_t end) const noexcept;

    // Returns the bytes of the chunks that are mapped wholly within [begin, end).
    int64_t bytes_within(uint64_t begin, uint64_t end) const noexcept;
    int64_t spare_bytes() const noexcept;

    // Returns the part of `bytes` not filled by spare chunks, taken in the order of map_spare().
    uint64_t lacking(uint64_t bytes) const noexcept;
    // Makes a new spare chunk, which counts for large requests. Returns the backend's status. Raises std::bad_alloc.
    yoke_status create(uint64_t bytes);
    // Maps the largest spare chunk of at most `most` bytes; *mapped receives the chunk's bytes, 0 if there is none.
    // Raises std::bad_alloc.
    yoke_status map_spare(uint64_t address, uint64_t most, uint64_t *mapped);
    // Makes the chunk mapped at `address` spare. On a failure, returns false and leaves the chunk mapped.
    bool unmap(uint64_t address) noexcept;
    // Gives the spare chunks back to the backend.
    void destroy_spare() noexcept;

private:
    using Spare = std::multimap<uint64_t, uint64_t>;  // ids by bytes

    Device &device_;
    MemoryCounters &counters_;
    Losses &losses_;
    uint64_t unit_ = ~uint64_t{0};      // not asked yet
    std::map<uint64_t, Chunk> mapped_;  // by address
    Spare spare_;
};

}  // namespace yoke
