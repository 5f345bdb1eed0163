#include "core/memory/page_table.h"

#include <cstdlib>

namespace yoke {

// Tables are zero where nobody has written: calloc gives large ones without touching them.
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
Place *RadixTree<kStep>::find(uint64_t address, bool makes) noexcept
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

bool PageTable::note(Block *block, RecentPlaces *recent) noexcept
{
    Place *const place = block->size > uint64_t{1} << 20 ? large_.find(block->address, true)
                         : block->size > 4096            ? pages_.find(block->address, true)
                                                         : lines_.find(block->address, true);
    if (!place) return false;
    place->block.store(block, std::memory_order_relaxed);
    place->address.store(block->address, std::memory_order_release);
    if (recent) recent->note(block->address, place);
    return true;
}

// Returns the block of the place if that is the address's, and takes it out. The block is its owner's until then; of
// others the address alone is read.
static Block *take_from(Place *place, uint64_t address, BlockUse use) noexcept
{
    if (!place || place->address.load(std::memory_order_acquire) != address) return nullptr;
    Block *const block = place->block.load(std::memory_order_relaxed);
    uint64_t known = address;
    if (block->use != use || !place->address.compare_exchange_strong(known, 0)) return nullptr;
    return block;
}

Block *PageTable::take(const void *pointer, BlockUse use, const RecentPlaces *recent) noexcept
{
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (recent)
        if (Block *block = take_from(recent->find(address), address, use)) return block;
    if (Block *block = take_from(large_.find(address, false), address, use)) return block;
    if (Block *block = take_from(pages_.find(address, false), address, use)) return block;
    return take_from(lines_.find(address, false), address, use);
}

}  // namespace yoke
