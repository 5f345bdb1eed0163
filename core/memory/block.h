// block.h: a block: a run of addresses in an extent, which is one backend block (a segment) or one range of virtual
// memory. The blocks of an extent fill it without gaps; each knows its neighbours (boundary tags).
#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke {

struct Extent;

enum class BlockState : uint8_t {
    kFree,  // waits for a request; in FreeRuns
    kUsed,  // belongs to a request, or to whoever takes it apart
    kHole,  // addresses of a range without memory; in FreeRuns of holes
};

struct Block {
    uint64_t address = 0, size = 0;
    Extent *extent = nullptr;
    Block *before = nullptr, *behind = nullptr;  // neighbours in the extent, null at its ends
    BlockState state = BlockState::kUsed;
    // Places in the heap of a bin (free_runs.h): the first child, the next sibling, and the sibling before or the
    // parent. A spare descriptor keeps the next spare one in `child`.
    Block *child = nullptr, *sibling = nullptr, *back = nullptr;

    uint64_t end() const { return address + size; }
};

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
    Page *pages_ = nullptr;
    Block *spare_ = nullptr;
    size_t spares_ = 0;
};

}  // namespace yoke
