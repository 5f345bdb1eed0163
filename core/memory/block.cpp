#include "core/memory/block.h"

#include <new>

namespace yoke {

struct BlockSlab::Page {
    static constexpr size_t kBlocks = 120;  // with its link a little less than 16 KiB
    Page *next;
    Block blocks[kBlocks];
};

BlockSlab::~BlockSlab()
{
    while (pages_) {
        Page *next = pages_->next;
        delete pages_;
        pages_ = next;
    }
}

bool BlockSlab::reserve(size_t count) noexcept
{
    while (spares_ < count) {
        Page *page = new (std::nothrow) Page;
        if (!page) return false;
        page->next = pages_;
        pages_ = page;
        for (Block &block : page->blocks) give(&block);
    }
    return true;
}

Block *BlockSlab::take() noexcept
{
    Block *taken = spare_;
    spare_ = taken->child;
    --spares_;
    *taken = {};
    return taken;
}

void BlockSlab::give(Block *block) noexcept
{
    block->child = spare_;
    spare_ = block;
    ++spares_;
}

}  // namespace yoke
