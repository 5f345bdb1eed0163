#include "core/memory/owner.h"

#include "core/base/immortal.h"
#include "core/base/thread_state.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr uint64_t kMark = uint64_t{1} << 63;

// Which owner a marked block belongs to. Each entry holds a reference: an owner outlives its blocks. Never freed, see
// raw.cpp.
struct Owners {
    Mutex mutex{LockRank::kOther};
    std::unordered_map<void *, BlockOwner *> of_block;
};
Owners &owners = immortal<Owners>();

}  // namespace

BlockOwner::BlockOwner(Device &device, uint8_t lane) : device_(device), lane_(lane) {}

void BlockOwner::note_use(uint8_t lane) noexcept
{
    if (lane != lane_) uses_.fetch_or(lane_bit(lane));
}

bool BlockOwner::owns(const void *block) noexcept
{
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(const_cast<void *>(block));
    return found != blocks_.end() && found->second.live;
}

void BlockOwner::serve_thread()
{
    thread_state().block_owner = this;
}

void BlockOwner::stop_serving_thread()
{
    thread_state().block_owner = nullptr;
    const std::lock_guard lock(mutex_);
    capturing_ = false;
}

void *BlockOwner::allocate(uint64_t bytes, uint64_t *capacity)
{
    {
        const std::lock_guard lock(mutex_);
        // The smallest that holds it without wasting half of itself.
        auto best = free_.end();
        for (auto i = free_.begin(); i != free_.end(); ++i) {
            const uint64_t size = blocks_.at(*i).capacity;
            if (size < bytes || size / 2 > bytes) continue;
            if (best == free_.end() || size < blocks_.at(*best).capacity) best = i;
        }
        if (best != free_.end()) {
            void *block = *best;
            free_.erase(best);
            blocks_.at(block).live = true;
            *capacity = blocks_.at(block).capacity | kMark;
            return block;
        }
    }
    thread_state().block_owner = nullptr;
    uint64_t size = 0;
    void *block = nullptr;
    try {
        block = allocate_block(device_, bytes, lane_, &size);
        const std::lock_guard lock(mutex_);
        // Room to note every block, so that no way back wants memory.
        if (free_.capacity() <= blocks_.size()) free_.reserve(2 * blocks_.size() + 8);
        blocks_.emplace(block, Block{size, 0, true, nullptr});
        const std::lock_guard all(owners.mutex);
        owners.of_block.emplace(block, this);
    } catch (...) {
        thread_state().block_owner = this;
        {
            const std::lock_guard lock(mutex_);
            blocks_.erase(block);
        }
        if (block) free_block(device_, block, size, lane_);
        throw;
    }
    retain();
    thread_state().block_owner = this;
    *capacity = size | kMark;
    return block;
}

void BlockOwner::note_storage(void *block, Storage *storage) noexcept
{
    const std::lock_guard lock(mutex_);
    if (const auto found = blocks_.find(block); found != blocks_.end())
        found->second.storage = storage;
}

void BlockOwner::take_back(void *block, uint16_t uses) noexcept
{
    BlockOwner *owner = nullptr;
    {
        const std::lock_guard lock(owners.mutex);
        const auto found = owners.of_block.find(block);
        if (found != owners.of_block.end()) owner = found->second;
    }
    if (owner) owner->give(block, uses);
}

void BlockOwner::give(void *block, uint16_t uses) noexcept
{
    {
        const std::lock_guard lock(mutex_);
        Block &record = blocks_.at(block);
        record.live = false;
        record.storage = nullptr;
        record.uses |= uses;
        if (!gone_) {
            if (capturing_) free_.push_back(block);  // there is room: see allocate()
            return;
        }
    }
    forget(block);
}

// Back to the allocator: nobody has the block, and nothing names it any more. Perhaps the end of this owner.
void BlockOwner::forget(void *block) noexcept
{
    Block record{};
    {
        const std::lock_guard lock(mutex_);
        const auto found = blocks_.find(block);
        record = found->second;
        blocks_.erase(found);
    }
    {
        const std::lock_guard all(owners.mutex);
        owners.of_block.erase(block);
    }
    free_block(device_, block, record.capacity, lane_, record.uses | uses_);
    release();
}

void BlockOwner::let_go() noexcept
{
    std::vector<void *> unused;
    {
        const std::lock_guard lock(mutex_);
        gone_ = true;
        unused.swap(free_);  // which has room for all
        unused.clear();
        for (const auto &[block, record] : blocks_)
            if (!record.live) unused.push_back(block);
    }
    for (void *block : unused) forget(block);
}

}  // namespace yoke
