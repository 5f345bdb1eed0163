// page_table.h: blocks by their address: those of C programs and of kernels' scratch, which are given back by their
// address alone. Reading takes no lock.
//
// A radix tree has a place for each 2^kStep bytes of addresses, and holds blocks of more bytes than that alone: of
// these no two begin within one place. So large blocks, which are far apart, share pages of host memory.
#pragma once

#include "core/memory/block.h"

#include <atomic>

namespace yoke {

struct Place {
    std::atomic<uint64_t> address;  // of the block; 0: there is none
    std::atomic<Block *> block;
};

// Places that a thread has filled lately, by the block's address: a free by the same thread finds its place without a
// walk. An entry may be out of date, so the place is looked at.
class RecentPlaces {
public:
    void note(uint64_t address, Place *place) noexcept
    {
        entries_[index(address)] = {address, place};
    }
    Place *find(uint64_t address) const noexcept
    {
        const Entry &entry = entries_[index(address)];
        return entry.address == address ? entry.place : nullptr;
    }

private:
    static constexpr int kBits = 7;
    struct Entry {
        uint64_t address;
        Place *place;
    };
    static size_t index(uint64_t address) noexcept
    {
        return (address >> 6 ^ address >> (6 + kBits)) & ((1u << kBits) - 1);
    }

    Entry entries_[1 << kBits];
};

template <int kStep>
class RadixTree {
public:
    // Returns the place of an address; null if there is none, or no host memory for it where `makes`.
    Place *find(uint64_t address, bool makes) noexcept;

private:
    // A leaf takes the lowest of 57 bits of an address, and three tables take the others.
    static constexpr int kTableBits = 10 + (20 - kStep) / 6,
                         kLeafBits = 57 - kStep - 3 * kTableBits;
    struct Leaf {
        Place places[1 << kLeafBits];
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
    // False where there is no host memory for it. `recent`: the calling thread's, or null.
    bool note(Block *block, RecentPlaces *recent) noexcept;
    // Takes the block out that begins there and is of that use; null if there is none.
    Block *take(const void *address, BlockUse use, const RecentPlaces *recent) noexcept;

private:
    RadixTree<20> large_;
    RadixTree<12> pages_;
    RadixTree<6> lines_;
};

}  // namespace yoke
