// page_table.h: blocks by address: blocks of C programs and scratch of kernels, given back by address alone. Reading
// takes no lock.
//
// A block keeps its place while waiting for the next request, so the table is seldom written. Block::noted says
// whether the block has a user.
//
// A radix tree has a place for each 2^kStep bytes of addresses. It holds only blocks of more bytes than this step, so
// no two blocks begin within the same place. Large blocks, which are far apart, thus share pages of host memory.
#pragma once

#include "core/memory/block.h"

namespace yoke {

// Blocks that a thread has noted lately, by their address: a free by the same thread needs no walk. An entry may be out
// of date, or of another address, so the block's own note decides.
class RecentBlocks {
public:
    void note(Block *block) noexcept { entries_[index(block->address)] = block; }
    Block *find(uint64_t address) const noexcept { return entries_[index(address)]; }

private:
    // By chance alone 2,048 live blocks take a tenth of each other's places here; of 2^12 places a third.
    static constexpr int kBits = 14;
    static size_t index(uint64_t address) noexcept
    {
        return (address >> 6 ^ address >> (6 + kBits)) & ((1u << kBits) - 1);
    }

    Block *entries_[1 << kBits];
};

template <int kStep>
class RadixTree {
public:
    // Returns the place of an address. Returns null if the place is missing, or, with `makes`, if host memory is
    // missing.
    BlockPlace *find(uint64_t address, bool makes) noexcept;

private:
    // A leaf takes the lowest of 57 bits of an address, and three tables take the others.
    static constexpr int kTableBits = 10 + (20 - kStep) / 6,
                         kLeafBits = 57 - kStep - 3 * kTableBits;
    struct Leaf {
        BlockPlace places[1 << kLeafBits];
    };
    template <class Next>
    struct Table {
        std::atomic<Next *> next[1 << kTableBits];
    };
    template <class T>
    static T *make(std::atomic<T *> &place) noexcept;

    Table<Table<Table<Leaf>>> root_ = {};
};

class PageTable {
public:
    // Notes the use of a block of the caller. Returns false without host memory for the note. `recent`: the calling
    // thread's recent blocks, or null.
    bool note(Block *block, BlockUse use, RecentBlocks *recent) noexcept;
    // Takes the block with this address and use, and deletes the note. Returns null if there is no such block.
    Block *take(const void *address, BlockUse use, const RecentBlocks *recent) noexcept;

private:
    // Gives the block a place in the tree for its size. Returns false without host memory.
    bool settle(Block *block) noexcept;

    RadixTree<20> large_;
    RadixTree<12> pages_;
    RadixTree<6> lines_;
};

}  // namespace yoke
