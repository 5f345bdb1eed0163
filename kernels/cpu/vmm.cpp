// Virtual memory of the CPU. A chunk is a private mapping of its own; mapping it moves its pages to the reserved
// address and unmapping moves them away again. Not a shared file (memfd): its pages would be one and the same in a
// forked child, whose writes the parent would then see.
#include <sys/mman.h>

#include <mutex>
#include <new>

#include "kernels/cpu/device.h"

namespace yoke::cpu {

constexpr uint64_t kGranularity = 2u << 20;  // a huge page

struct Chunk {
    uint64_t mark;
    uint64_t bytes;
    char *place;  // where its pages are now
    bool mapped;
    Chunk *next;  // of the mapped ones
};

constexpr uint64_t kChunkMark = 0x6b6e7568632e7970u;

static std::mutex g_mutex;
static Chunk *g_mapped = nullptr;

// The thread that held the lock at the fork does not exist in the child.
void vmm_after_fork()
{
    new (&g_mutex) std::mutex;
}

static void *reserve_pages(void *address, uint64_t bytes)
{
    int fixed = address ? MAP_FIXED : 0;
    return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1,
                0);
}

static yoke_status check_size(void *device, uint64_t bytes, const char *call)
{
    if (bytes == 0 || bytes % kGranularity)
        return fail(YOKE_E_VALUE, "cpu: %s got %llu bytes; use a multiple of %llu", call,
                    (unsigned long long)bytes, (unsigned long long)kGranularity);
    return check_device(device, call);
}

// Whether a chunk is mapped anywhere in the range.
static bool is_taken(const char *begin, uint64_t bytes)
{
    for (const Chunk *chunk = g_mapped; chunk; chunk = chunk->next)
        if (chunk->place < begin + bytes && begin < chunk->place + chunk->bytes) return true;
    return false;
}

static Chunk *find_chunk(uint64_t handle)
{
    Chunk *chunk = reinterpret_cast<Chunk *>(handle);
    return chunk && chunk->mark == kChunkMark ? chunk : nullptr;
}

yoke_status vmm_granularity(void *device, uint64_t *bytes)
{
    if (yoke_status status = check_device(device, "vmm_granularity")) return status;
    *bytes = kGranularity;
    return YOKE_OK;
}

yoke_status vmm_reserve(void *device, uint64_t bytes, void **address)
{
    if (yoke_status status = check_size(device, bytes, "vmm_reserve")) return status;
    void *start = reserve_pages(nullptr, bytes);
    if (start == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: reserving addresses", bytes);
    *address = start;
    return YOKE_OK;
}

yoke_status vmm_release(void *device, void *address, uint64_t bytes)
{
    if (yoke_status status = check_size(device, bytes, "vmm_release")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    if (is_taken(static_cast<char *>(address), bytes))
        return fail(YOKE_E_STATE, "cpu: a chunk is still mapped in the range to release");
    if (munmap(address, bytes)) return fail_errno(YOKE_E_VALUE, "cpu: releasing addresses", bytes);
    return YOKE_OK;
}

yoke_status vmm_create(void *device, uint64_t bytes, uint64_t *handle)
{
    if (yoke_status status = check_size(device, bytes, "vmm_create")) return status;
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: a chunk of memory", bytes);
    Chunk *chunk = new (std::nothrow) Chunk;
    if (!chunk) {
        munmap(pages, bytes);
        return fail(YOKE_E_OOM, "cpu: no host memory for a chunk's record");
    }
    *chunk = {kChunkMark, bytes, static_cast<char *>(pages), false, nullptr};
    *handle = reinterpret_cast<uint64_t>(chunk);
    return YOKE_OK;
}

yoke_status vmm_destroy(void *device, uint64_t handle)
{
    if (yoke_status status = check_device(device, "vmm_destroy")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(handle);
    if (!chunk) return fail(YOKE_E_CLOSED, "cpu: vmm_destroy was given no live chunk");
    if (chunk->mapped) return fail(YOKE_E_STATE, "cpu: the chunk is still mapped; unmap it first");
    if (munmap(chunk->place, chunk->bytes))
        return fail_errno(YOKE_E_INTERNAL, "cpu: giving back a chunk", chunk->bytes);
    chunk->mark = 0;
    delete chunk;
    return YOKE_OK;
}

yoke_status vmm_map(void *device, void *address, uint64_t bytes, uint64_t handle)
{
    if (yoke_status status = check_size(device, bytes, "vmm_map")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(handle);
    if (!chunk) return fail(YOKE_E_CLOSED, "cpu: vmm_map was given no live chunk");
    if (chunk->mapped) return fail(YOKE_E_STATE, "cpu: the chunk is already mapped elsewhere");
    if (is_taken(static_cast<char *>(address), bytes))
        return fail(YOKE_E_STATE, "cpu: another chunk is mapped in that range; unmap it first");
    if (chunk->bytes != bytes)
        return fail(YOKE_E_VALUE, "cpu: vmm_map of %llu bytes, but the chunk has %llu",
                    (unsigned long long)bytes, (unsigned long long)chunk->bytes);
    if (mremap(chunk->place, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) == MAP_FAILED)
        return fail_errno(YOKE_E_OOM, "cpu: mapping a chunk", bytes);
    madvise(address, bytes, MADV_HUGEPAGE);
    chunk->place = static_cast<char *>(address);
    chunk->mapped = true;
    chunk->next = g_mapped;
    g_mapped = chunk;
    return YOKE_OK;
}

// The pages move to addresses of their own. What they leave stays reserved: the kernel keeps the old range
// (DONTUNMAP, Linux 5.7), so that no other thread's mmap can slip in before it is made inaccessible.
static yoke_status move_away(Chunk *chunk)
{
    void *home = reserve_pages(nullptr, chunk->bytes);
    if (home == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", chunk->bytes);
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    void *moved = MAP_FAILED;
#ifdef MREMAP_DONTUNMAP
    moved = mremap(chunk->place, chunk->bytes, chunk->bytes, flags | MREMAP_DONTUNMAP, home);
#endif
    if (moved == MAP_FAILED) moved = mremap(chunk->place, chunk->bytes, chunk->bytes, flags, home);
    if (moved == MAP_FAILED) {
        yoke_status status = fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", chunk->bytes);
        munmap(home, chunk->bytes);
        return status;
    }
    void *hole = reserve_pages(chunk->place, chunk->bytes);
    chunk->place = static_cast<char *>(home);
    if (hole == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", chunk->bytes);
    return YOKE_OK;
}

yoke_status vmm_unmap(void *device, void *address, uint64_t bytes)
{
    if (yoke_status status = check_size(device, bytes, "vmm_unmap")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    for (Chunk **link = &g_mapped; *link; link = &(*link)->next) {
        Chunk *chunk = *link;
        if (chunk->place != address || chunk->bytes != bytes) continue;
        if (yoke_status status = move_away(chunk)) return status;
        *link = chunk->next;
        chunk->mapped = false;
        return YOKE_OK;
    }
    return fail(YOKE_E_VALUE, "cpu: vmm_unmap of %llu bytes at a place where no such chunk is",
                (unsigned long long)bytes);
}

}  // namespace yoke::cpu
