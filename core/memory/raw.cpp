// Blocks given back by their address alone: raw blocks of C programs, scratch of kernels.
#include "core/backend/registry.h"
#include "core/base/immortal.h"
#include "core/memory/graph_pool.h"
#include "core/memory/magazines.h"
#include "core/memory/memory.h"
#include "core/memory/page_table.h"

#include <new>

namespace yoke {

namespace {

// Living blocks by address.
PageTable &blocks = immortal<PageTable>();

// Notes the block and its use by address. Without host memory for the note, frees the block and returns false.
bool note(Device &device, Block *block, BlockUse use) noexcept
{
    if (blocks.note(block, use, ThreadCache::recent_of_thread())) return true;
    free_block(device, block);
    return false;
}

// Returns the address of a new noted block. If host memory for the note is missing, empties the caches, whose
// blocks may be host memory, and tries once more. If memory is still missing, raises std::bad_alloc.
void *alloc(Device &device, uint64_t bytes, uint8_t lane, BlockUse use)
{
    Block *block = allocate_block(device, bytes, lane);
    if (note(device, block, use)) [[likely]]
        return block->data();
    empty_cache(nullptr);
    block = allocate_block(device, bytes, lane);
    if (!note(device, block, use)) throw std::bad_alloc();
    return block->data();
}

// Returns the address of a new noted block, or null if memory is not at hand.
void *try_alloc(Device &device, uint64_t bytes, uint8_t lane, BlockUse use)
{
    Block *block = try_allocate_block(device, bytes, lane);
    return block && note(device, block, use) ? block->data() : nullptr;
}

bool free(void *pointer, BlockUse use) noexcept
{
    Block *block = blocks.take(pointer, use, ThreadCache::recent_of_thread());
    if (!block) return false;
    free_block(block->arena ? block->arena->device : *block->device, block);
    return true;
}

// Returns the lane for scratch on the stream. Returns 0 during the capture of a graph of the device: the graph owns
// this memory, and its stream has no lane.
uint8_t lane_of_scratch(Device &device, void *stream)
{
    const GraphPool *graph = GraphPool::of_thread();
    return graph && &graph->device() == &device ? 0 : lane_of(device, stream);
}

}  // namespace

// Allocates scratch for a kernel to *out; 0 bytes give null. A backend is C, so errors of the allocator become the
// returned status.
yoke_status detail::alloc_scratch(void *handle, uint64_t bytes, void *stream, uint32_t flags,
                                  void **out) noexcept
{
    Device *device = find_device(handle);
    if (!device)
        return set_backend_error(YOKE_E_INTERNAL, 0, "scratch for a device that is not open");
    if (bytes == 0) {
        *out = nullptr;
        return YOKE_OK;
    }
    try {
        const uint8_t lane = lane_of_scratch(*device, stream);
        const bool is_optional = flags & YOKE_SCRATCH_OPTIONAL;
        *out = (is_optional ? try_alloc : alloc)(*device, bytes, lane, BlockUse::kScratch);
        return *out ? YOKE_OK
                    : set_backend_error(YOKE_E_OOM, 0, "no free memory for optional scratch");
    } catch (const Error &error) {
        return set_backend_error(error.status(), error.native_code(), error.what());
    } catch (const std::bad_alloc &) {
        return set_backend_error(YOKE_E_OOM, 0,
                                 "no host memory for the record of a block of scratch");
    }
}

void detail::free_scratch(void *, void *pointer, void *) noexcept
{
    if (pointer) free(pointer, BlockUse::kScratch);
}

void *raw_alloc(Device &device, uint64_t bytes, void *stream)
{
    return alloc(device, bytes ? bytes : 1, lane_of(device, stream), BlockUse::kRaw);
}

void raw_free(void *pointer)
{
    if (pointer && !free(pointer, BlockUse::kRaw))
        fail(
            YOKE_E_VALUE,
            "pointer %p is not an allocated block: alloc did not return it, or it was already freed; free each block once",
            pointer);
}

}  // namespace yoke
