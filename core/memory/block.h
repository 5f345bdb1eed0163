// block.h: a block: a run of addresses in an extent, which is one backend block (a segment) or one range of virtual
// memory. The blocks of an extent fill it without gaps; each knows its neighbours (boundary tags).
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
    kUsed,  // belongs to a request, or to whoever takes it apart
    kHole,  // addresses of a range without memory; in FreeRuns of holes
};

// What a block that is given back by its address alone is. The values fit below an address, whose lowest six bits are
// 0.
enum class BlockUse : uint8_t { kRaw = 1, kScratch = 2 };

// Entry of the page table (page_table.h): a block, which may have gone since; its `noted` tells.
using BlockPlace = std::atomic<Block *>;

// A descriptor fills two cache lines. The first one has what a request that a magazine serves needs, and its free.
// Descriptors are never given back to the host: a thread may look at `noted` of one that was its own (page_table.h).
struct alignas(64) Block {
    uint64_t address = 0, size = 0;
    Arena *arena = nullptr;  // null: a backend block of its own, got without caching
    Relaxed<uint64_t>
        noted;  // address | BlockUse while raw_free or a kernel may give it back; else 0
    // Places in the heap of a bin (free_runs.h): the first child, the next sibling, and the sibling before or the
    // parent. A spare descriptor keeps the next spare one in `child`, a block in a magazine the next one there.
    Block *child = nullptr;
    // The request that a used block serves. The block's owner alone reads and writes what follows up to the state.
    uint64_t requested = 0;  // what was asked for
    uint64_t capacity = 0;   // the size that counts: a request's rounded one
    bool has_place = false;  // in the page table, for this address and size
    bool is_kept = false;    // nobody has it, and a graph's launches name it
    uint8_t lane = 0;  // the stream that it is ordered on, which may be another than its arena's
    BlockState state = BlockState::kUsed;

    union {
        Extent *extent = nullptr;
        yoke_device *device;  // of a backend block of its own
    };
    Block *before = nullptr, *behind = nullptr;  // neighbours in the extent, null at its ends
    union {
        Block *sibling = nullptr;
        Storage *storage;  // of a used block in a graph's pool: whose memory it is
    };
    Block *back = nullptr;
    Guards *guards = nullptr;  // of a used block: what stands behind its last uses elsewhere
    // The last free of any of its bytes: work of before may still use them. By its arena's clock, and by the fences
    // that its arena's lane had then.
    uint64_t freed_at = 0, freed_behind = 0;

    uint64_t end() const { return address + size; }
    void *data() const { return reinterpret_cast<void *>(address); }
};
static_assert(sizeof(Block) == 128);

// Descriptors of blocks, made many at a time, so that a request takes no host memory of its own. Its owner's lock
// guards it.
class BlockSlab {
public:
    BlockSlab() = default;
    ~BlockSlab();
    BlockSlab(const BlockSlab &) = delete;
    BlockSlab &operator=(const BlockSlab &) = delete;

    // Makes sure that `count` descriptors can be taken; false without host memory.
    bool reserve(size_t count) noexcept;
    // A descriptor that was reserved.
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
