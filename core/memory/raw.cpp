// Blocks that are given back by their address alone: raw blocks of C programs, scratch of kernels.
#include "core/backend/registry.h"
#include "core/base/immortal.h"
#include "core/memory/blocks.h"
#include "core/memory/memory.h"
#include "core/memory/owner.h"

#include <new>
#include <unordered_map>

namespace yoke {

namespace {

struct RawBlock {
    Device *device;
    uint64_t capacity;
    uint8_t lane;
};

// Live blocks by address.
class LiveBlocks {
public:
    void *alloc(Device &device, uint64_t bytes, uint8_t lane)
    {
        RawBlock block{&device, 0, lane};
        void *pointer = allocate_block(device, bytes, block.lane, &block.capacity);
        try {
            const std::lock_guard lock(mutex_);
            blocks_.emplace(pointer, block);
        } catch (...) {
            free_block(device, pointer, block.capacity, block.lane);
            throw;
        }
        return pointer;
    }
    // False if there is no such block.
    bool free(void *pointer) noexcept
    {
        RawBlock block;
        {
            const std::lock_guard lock(mutex_);
            const auto found = blocks_.find(pointer);
            if (found == blocks_.end()) return false;
            block = found->second;
            blocks_.erase(found);
        }
        free_block(*block.device, pointer, block.capacity, block.lane);
        return true;
    }

private:
    Mutex mutex_{LockRank::kBlocks};
    std::unordered_map<void *, RawBlock> blocks_;
};

LiveBlocks &raw_blocks = immortal<LiveBlocks>();
LiveBlocks &scratch_blocks = immortal<LiveBlocks>();

// A graph owns the memory of its capture, whose stream has no lane.
uint8_t lane_of_scratch(Device &device, void *stream)
{
    const BlockOwner *owner = BlockOwner::of_thread();
    return owner && &owner->device() == &device ? 0 : lane_of(device, stream);
}

}  // namespace

// A backend is C: what the allocator raises becomes a status here.
yoke_status detail::alloc_scratch(void *handle, uint64_t bytes, void *stream, void **out) noexcept
{
    Device *device = find_device(handle);
    if (!device)
        return set_backend_error(YOKE_E_INTERNAL, 0, "scratch for a device that is not open");
    if (bytes == 0) {
        *out = nullptr;
        return YOKE_OK;
    }
    try {
        *out = scratch_blocks.alloc(*device, bytes, lane_of_scratch(*device, stream));
        return YOKE_OK;
    } catch (const Error &error) {
        return set_backend_error(error.status(), error.native_code(), error.what());
    } catch (const std::bad_alloc &) {
        return set_backend_error(YOKE_E_OOM, 0, "no host memory to note a block of scratch");
    }
}

void detail::free_scratch(void *, void *pointer, void *) noexcept
{
    if (pointer) scratch_blocks.free(pointer);
}

void *raw_alloc(Device &device, uint64_t bytes, void *stream)
{
    return raw_blocks.alloc(device, bytes ? bytes : 1, lane_of(device, stream));
}

void raw_free(void *pointer)
{
    if (pointer && !raw_blocks.free(pointer))
        fail(
            YOKE_E_VALUE,
            "pointer %p is no live block: it was not given by alloc, or was freed already; free each block once",
            pointer);
}

}  // namespace yoke
