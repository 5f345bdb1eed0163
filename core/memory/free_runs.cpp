#include "core/memory/free_runs.h"

namespace yoke {

int FreeRuns::next_bin(int bin) const noexcept
{
    if (bin >= kBins) return -1;
    int power = bin >> kStepBits;
    const unsigned steps = steps_[power] & (~0u << (bin & (kSteps - 1)));
    if (steps) return (power << kStepBits) + std::countr_zero(steps);
    const uint64_t powers = power == 63 ? 0 : powers_ & (~uint64_t{0} << (power + 1));
    if (!powers) return -1;
    power = std::countr_zero(powers);
    return (power << kStepBits) + std::countr_zero(static_cast<unsigned>(steps_[power]));
}

Block *FreeRuns::find(uint64_t size) const noexcept
{
    const int bin = bin_of(size);
    if (Block *lowest = heaps_[bin]; lowest && lowest->size >= size) return lowest;
    const int found = next_bin(bin + 1);
    return found < 0 ? nullptr : heaps_[found];
}

Block *FreeRuns::largest() const noexcept
{
    if (!powers_) return nullptr;
    const int power = 63 - std::countl_zero(powers_);
    const int step = std::bit_width(static_cast<unsigned>(steps_[power])) - 1;
    return heaps_[(power << kStepBits) + step];
}

// Returns the heap of both; each is a root without siblings, or null.
Block *FreeRuns::meld(Block *a, Block *b) noexcept
{
    if (!a) return b;
    if (!b) return a;
    if (b->address < a->address) {
        Block *const lower = b;
        b = a;
        a = lower;
    }
    b->back = a;
    b->sibling = a->child;
    if (a->child) a->child->back = b;
    a->child = b;
    return a;
}

// Returns the heap of a list of siblings: melded in pairs, then the pairs from the last pair on.
Block *FreeRuns::meld_siblings(Block *first) noexcept
{
    Block *pairs = nullptr;  // linked by `sibling`, the last one first
    while (first) {
        Block *const a = first, *const b = a->sibling;
        first = b ? b->sibling : nullptr;
        a->sibling = a->back = nullptr;
        if (b) b->sibling = b->back = nullptr;
        Block *const pair = meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    Block *heap = nullptr;
    while (pairs) {
        Block *const next = pairs->sibling;
        pairs->sibling = nullptr;
        heap = meld(heap, pairs);
        pairs = next;
    }
    return heap;
}

void FreeRuns::insert(Block *block) noexcept
{
    const int bin = bin_of(block->size), power = bin >> kStepBits;
    block->child = block->sibling = block->back = nullptr;
    heaps_[bin] = meld(heaps_[bin], block);
    powers_ |= uint64_t{1} << power;
    steps_[power] = static_cast<uint16_t>(steps_[power] | 1u << (bin & (kSteps - 1)));
    bytes_ += block->size;
}

void FreeRuns::erase(Block *block) noexcept
{
    const int bin = bin_of(block->size), power = bin >> kStepBits;
    Block *const below = meld_siblings(block->child);
    if (Block *const back = block->back) {
        (back->child == block ? back->child : back->sibling) = block->sibling;
        if (block->sibling) block->sibling->back = back;
        heaps_[bin] = meld(heaps_[bin], below);
    } else {
        heaps_[bin] = below;
    }
    block->child = block->sibling = block->back = nullptr;
    bytes_ -= block->size;
    if (heaps_[bin]) return;
    steps_[power] = static_cast<uint16_t>(steps_[power] & ~(1u << (bin & (kSteps - 1))));
    if (!steps_[power]) powers_ &= ~(uint64_t{1} << power);
}

}  // namespace yoke
