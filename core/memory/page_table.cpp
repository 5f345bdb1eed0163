#include "core/memory/page_table.h"

#include "core/memory/sizes.h"

#include <cstdlib>

namespace yoke {

// Makes a table, unless another thread has made it meanwhile, and returns it; null without host memory. Unwritten
// tables are zero: calloc provides large tables without touching them.
template <int kStep>
template <class T>
T *RadixTree<kStep>::make(std::atomic<T *> &place) noexcept
{
    auto *made = static_cast<T *>(calloc(1, sizeof(T)));
    T *known = nullptr;
    if (!made || place.compare_exchange_strong(known, made)) return made;
    free(made);
    return known;
}

template <int kStep>
BlockPlace *RadixTree<kStep>::find(uint64_t address, bool makes) noexcept
{
    if (address >> 57) return nullptr;
    const auto down = [&](auto &table, int level) {
        const uint64_t index = address >> (kStep + kLeafBits + level * kTableBits);
        auto &place = table.next[index & ((1u << kTableBits) - 1)];
        auto *next = place.load(std::memory_order_acquire);
        return next || !makes ? next : make(place);
    };
    auto *second = down(root_, 2);
    auto *third = second ? down(*second, 1) : nullptr;
    Leaf *leaf = third ? down(*third, 0) : nullptr;
    return leaf ? &leaf->places[(address >> kStep) & ((1u << kLeafBits) - 1)] : nullptr;
}

static uint64_t note_of(uint64_t address, BlockUse use) noexcept
{
    return address | static_cast<uint64_t>(use);
}

bool PageTable::settle(Block *block) noexcept
{
    BlockPlace *const place = block->size > uint64_t{1} << 20 ? large_.find(block->address, true)
                              : block->size > 4096            ? pages_.find(block->address, true)
                                                              : lines_.find(block->address, true);
    if (!place) return false;
    place->store(block, std::memory_order_release);
    block->has_place = true;
    return true;
}

bool PageTable::note(Block *block, BlockUse use, RecentBlocks *recent) noexcept
{
    if (!block->has_place && !settle(block)) return false;
    block->noted = note_of(block->address, use);
    if (recent) recent->note(block);
    return true;
}

Block *PageTable::take(const void *pointer, BlockUse use, const RecentBlocks *recent) noexcept
{
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (address % kSmallStep) return nullptr;
    // If several threads free the same block, a single thread gets the block. The word contains the address too, so a
    // descriptor in use elsewhere meanwhile is left alone.
    const uint64_t note = note_of(address, use);
    const auto takes = [note](Block *block) {
        return block && block->noted == note && block->noted.exchange_if(note, 0);
    };
    Block *block = recent ? recent->find(address) : nullptr;
    if (takes(block)) return block;
    const auto takes_from = [&](const BlockPlace *place) {
        block = place ? place->load(std::memory_order_acquire) : nullptr;
        return takes(block);
    };
    return takes_from(large_.find(address, false)) || takes_from(pages_.find(address, false)) ||
                   takes_from(lines_.find(address, false))
               ? block
               : nullptr;
}

}  // namespace yoke
