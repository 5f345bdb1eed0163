// block.h: a block: a run of addresses in an extent. An extent is a backend block (a segment) or a range of virtual
// memory. The blocks of an extent fill it without gaps; each block knows its neighbours (boundary tags).
#pragma once

#include "core/base/relaxed.h"
#include "core/memory/guards.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

struct yoke_device;

namespace yoke {

class Arena;
class Storage;
struct Block;
struct Extent;

enum class BlockState : uint8_t {
    kFree,  // waits for a request; in FreeRuns
    kUsed,  // belongs to a request, or to code taking it apart
    kHole,  // addresses of a range without memory; in FreeRuns of holes
};

// Use of a block given back by its address alone. The values fit below an address, whose lowest six bits are 0.
enum class BlockUse : uint8_t { kRaw = 1, kScratch = 2 };

// Entry of the page table (page_table.h): a block, possibly gone since; its `noted` shows this.
using BlockPlace = std::atomic<Block *>;

// Descriptor of a block, in two cache lines. The first line has all fields needed by a request from a magazine, and
// by its free. Descriptors are never given back to the system: a thread may look at `noted` of its former descriptor
// (page_table.h).
struct alignas(64) Block {
    uint64_t address = 0, size = 0;
    Arena *arena = nullptr;  // null: a backend block of its own, got without caching
    Relaxed<uint64_t>
        noted;  // address | BlockUse while raw_free or a kernel may give it back; else 0
    // Places in the heap of a bin (free_runs.h): the first child, the next sibling, and the sibling before or the
    // parent. A spare descriptor keeps the next spare one in `child`, a block in a magazine the next one there.
    Block *child = nullptr;
    // Request served by a used block. Only the block's owner reads and writes the following fields, up to the state.
    uint64_t requested = 0;  // requested bytes
    uint64_t capacity = 0;   // counted size: the rounded request
    bool has_place = false;  // in the page table, for this address and size
    bool is_kept = false;    // without a user, but named by a graph's launches
    uint8_t lane = 0;        // stream of the block's order, possibly not its arena's stream
    BlockState state = BlockState::kUsed;

    union {
        Extent *extent = nullptr;
        yoke_device *device;  // for a backend block of its own
    };
    Block *before = nullptr, *behind = nullptr;  // neighbours in the extent, null at its ends
    union {
        Block *sibling = nullptr;
        Storage *storage;  // storage of a used block in a graph's pool
    };
    Block *back = nullptr;
    Guards *guards = nullptr;  // for a used block: fences behind its last uses elsewhere
    // Time of the last free of any of the block's bytes, since earlier work may still use them. By the clock of the
    // block's arena, and by the fence count of the arena's lane.
    uint64_t freed_at = 0, freed_behind = 0;

    uint64_t end() const { return address + size; }
    void *data() const { return reinterpret_cast<void *>(address); }
};
static_assert(sizeof(Block) == 128);

// Descriptors of blocks, made many at a time, so that a request takes no host memory. The lock of the slab's owner
// guards the slab.
class BlockSlab {
public:
    BlockSlab() = default;
    ~BlockSlab();
    BlockSlab(const BlockSlab &) = delete;
    BlockSlab &operator=(const BlockSlab &) = delete;

    // Makes `count` descriptors ready for take(). Returns false without host memory.
    bool reserve(size_t count) noexcept;
    // Returns an empty descriptor. The caller has called reserve() before.
    Block *take() noexcept;
    void give(Block *block) noexcept;

private:
    struct Page;
    struct Pages;
    static Page *take_page() noexcept;
    static Pages &unowned_;
    Page *pages_ = nullptr;
    Block *spare_ = nullptr;
    size_t spares_ = 0;
};

}  // namespace yoke
