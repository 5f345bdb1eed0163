#include "core/memory/block.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <mutex>
#include <new>

namespace yoke {

struct BlockSlab::Page {
    static constexpr size_t kBlocks = 126;  // with its link a little less than 16 KiB
    Page *next = nullptr;
    Block blocks[kBlocks];
};

// Pages without an owner. The `noted` of their blocks is 0, and other threads look only at `noted`.
struct BlockSlab::Pages {
    Mutex mutex{LockRank::kOther};
    Page *first = nullptr;
};
BlockSlab::Pages &BlockSlab::unowned_ = immortal<Pages>();

BlockSlab::~BlockSlab()
{
    while (Page *const page = pages_) {
        for (Block &block : page->blocks) block = {};
        pages_ = page->next;
        const std::lock_guard lock(unowned_.mutex);
        page->next = unowned_.first;
        unowned_.first = page;
    }
}

BlockSlab::Page *BlockSlab::take_page() noexcept
{
    {
        const std::lock_guard lock(unowned_.mutex);
        if (Page *const page = unowned_.first) {
            unowned_.first = page->next;
            return page;
        }
    }
    return new (std::nothrow) Page;
}

bool BlockSlab::reserve(size_t count) noexcept
{
    while (spares_ < count) {
        Page *const page = take_page();
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
