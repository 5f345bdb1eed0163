// free_runs.h: free blocks by size: a good fit in constant time, the lowest address first.
//
// Sixteen bins for each power of two, with a bitmap of the non-empty powers, and a bitmap of the bins of each power
// (two-level segregated fit). A bin is a pairing heap by address. Low addresses are taken first, so high addresses
// become free in long runs.
#pragma once

#include "core/memory/block.h"

#include <bit>

namespace yoke {

class FreeRuns {
public:
    // Returns a block of at least `size` bytes, or null. The block stays in the set. Of the bin that `size` falls into
    // only the lowest block is looked at; if that block is too small, a larger bin serves.
    Block *find(uint64_t size) const noexcept;
    // Returns a block of the greatest bin, or null.
    Block *largest() const noexcept;
    void insert(Block *block) noexcept;
    void erase(Block *block) noexcept;
    uint64_t bytes() const noexcept { return bytes_; }
    bool empty() const noexcept { return powers_ == 0; }

    // Calls f(block) for each block of at least `size` bytes while f returns true. f must change no block.
    template <class F>
    void each(uint64_t size, const F &f) const
    {
        for (int bin = bin_of(size); bin < kBins; ++bin)
            for (Block *block = heaps_[bin]; block; block = next_of(block))
                if (block->size >= size && !f(*block)) return;
    }

private:
    static constexpr int kStepBits = 4, kSteps = 1 << kStepBits;
    static constexpr int kBins = 64 * kSteps;

    // Returns the bin of blocks of that size. Sizes below kSteps have a bin each.
    static int bin_of(uint64_t size) noexcept
    {
        if (size < kSteps) return static_cast<int>(size);
        const int power = std::bit_width(size) - 1;
        return ((power - kStepBits + 1) << kStepBits) +
               static_cast<int>((size >> (power - kStepBits)) & (kSteps - 1));
    }
    // Returns the first bin from `bin` on that has a block, or -1.
    int next_bin(int bin) const noexcept;
    static Block *meld(Block *a, Block *b) noexcept;
    static Block *meld_siblings(Block *first) noexcept;
    // Returns the block behind this block in its heap, parents before children. A heap may be as deep as its number
    // of blocks.
    static Block *next_of(Block *block) noexcept
    {
        if (block->child) return block->child;
        while (!block->sibling) {
            while (block->back && block->back->child != block)
                block = block->back;  // to the first of its siblings
            block = block->back;
            if (!block) return nullptr;
        }
        return block->sibling;
    }

    uint64_t powers_ = 0;
    uint16_t steps_[64] = {};
    Block *heaps_[kBins] = {};
    uint64_t bytes_ = 0;
};

}  // namespace yoke
