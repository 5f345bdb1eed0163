// Virtual memory of the CPU. A chunk is a private mapping. vmm_map moves its pages to the reserved address, and
// vmm_unmap moves the pages away again. A shared file (memfd) would not do: a forked child would share the pages, and
// the parent would see the child's writes.
#include <sys/mman.h>

#include <mutex>
#include <new>

#include "kernels/common/ranges.h"
#include "kernels/cpu/device.h"

namespace yoke::cpu {

constexpr uint64_t kGranularity = 2u << 20;  // a huge page

struct Chunk {
    kernels::Range id;     // a single number
    kernels::Range place;  // present addresses of its pages
    bool mapped;
    Chunk *next;   // in the list of all chunks
    Chunk **link;  // pointer to this chunk in the list
};

// All chunks by their ids, mapped chunks by their places, and the lock of both sets.
static std::mutex g_mutex;
static kernels::Ranges g_chunks, g_mapped;
static Chunk *g_first = nullptr;
static uint64_t g_last_id = 0;

// Makes the lock and the sets anew in a forked child: another thread of the parent may have been changing both. The
// list of chunks is whole at any instant, since one store changes it.
void vmm_after_fork()
{
    new (&g_mutex) std::mutex;
    g_chunks = {};
    g_mapped = {};
    for (Chunk *chunk = g_first; chunk; chunk = chunk->next) {
        g_chunks.insert(&chunk->id);
        if (chunk->mapped) g_mapped.insert(&chunk->place);
    }
}

static bool enlist(Chunk *chunk)
{
    chunk->id = {++g_last_id, 1, chunk};
    if (!g_chunks.insert(&chunk->id)) return false;
    chunk->next = g_first;
    chunk->link = &g_first;
    if (g_first) g_first->link = &chunk->next;
    g_first = chunk;
    return true;
}

static void strike_off(Chunk *chunk)
{
    g_chunks.erase(&chunk->id);
    *chunk->link = chunk->next;
    if (chunk->next) chunk->next->link = chunk->link;
}

static char *pages_of(const Chunk *chunk)
{
    return reinterpret_cast<char *>(chunk->place.begin);
}

static Chunk *chunk_of(const kernels::Range *range)
{
    return range ? static_cast<Chunk *>(range->owner) : nullptr;
}

static Chunk *find_chunk(uint64_t id)
{
    return chunk_of(g_chunks.find(id, 1));
}

// Returns a chunk mapped in [begin, begin + bytes), or null.
static Chunk *find_mapped(const void *begin, uint64_t bytes)
{
    return chunk_of(g_mapped.find(reinterpret_cast<uintptr_t>(begin), bytes));
}

static void *new_pages(void *address, uint64_t bytes, int access)
{
    int flags =
        MAP_PRIVATE | MAP_ANONYMOUS | (access ? 0 : MAP_NORESERVE) | (address ? MAP_FIXED : 0);
    return mmap(address, bytes, access, flags, -1, 0);
}

// Makes pages at an address that is a multiple of the granularity. Otherwise chunks could not have huge pages: Linux
// aligns large anonymous maps itself from 6.7 on only.
static void *new_aligned_pages(uint64_t bytes, int access)
{
    // The system puts pages beside the last pages, so the address is mostly aligned.
    void *found = new_pages(nullptr, bytes, access);
    if (found == MAP_FAILED || reinterpret_cast<uintptr_t>(found) % kGranularity == 0) return found;
    munmap(found, bytes);
    char *start = static_cast<char *>(new_pages(nullptr, bytes + kGranularity, access));
    if (start == MAP_FAILED) return MAP_FAILED;
    const uint64_t before = -reinterpret_cast<uintptr_t>(start) % kGranularity;
    if (before) munmap(start, before);
    munmap(start + before + bytes, kGranularity - before);
    return start + before;
}

static yoke_status check_size(void *device, uint64_t bytes, const char *call)
{
    if (bytes == 0 || bytes % kGranularity)
        return fail(YOKE_E_VALUE, "cpu: %s got %llu bytes; use a multiple of %llu", call,
                    (unsigned long long)bytes, (unsigned long long)kGranularity);
    return check_device(device, call);
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
    void *start = new_aligned_pages(bytes, PROT_NONE);
    if (start == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: reserving addresses", bytes);
    *address = start;
    return YOKE_OK;
}

yoke_status vmm_release(void *device, void *address, uint64_t bytes)
{
    if (yoke_status status = check_size(device, bytes, "vmm_release")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    if (find_mapped(address, bytes))
        return fail(YOKE_E_STATE,
                    "cpu: a chunk is still mapped in the range to release; unmap it first");
    if (munmap(address, bytes)) return fail_errno(YOKE_E_VALUE, "cpu: releasing addresses", bytes);
    return YOKE_OK;
}

yoke_status vmm_create(void *device, uint64_t bytes, uint64_t *handle)
{
    if (yoke_status status = check_size(device, bytes, "vmm_create")) return status;
    void *pages = new_aligned_pages(bytes, PROT_READ | PROT_WRITE);
    if (pages == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: creating a chunk", bytes);
    Chunk *chunk = new (std::nothrow) Chunk;
    if (!chunk) {
        munmap(pages, bytes);
        return fail(YOKE_E_OOM, "cpu: no host memory for a chunk's record");
    }
    *chunk = {{}, {reinterpret_cast<uintptr_t>(pages), bytes, chunk}, false, nullptr, nullptr};
    std::lock_guard<std::mutex> lock(g_mutex);
    if (!enlist(chunk)) {
        munmap(pages, bytes);
        delete chunk;
        return fail(YOKE_E_OOM, "cpu: no host memory for the list of chunks");
    }
    *handle = chunk->id.begin;
    return YOKE_OK;
}

yoke_status vmm_destroy(void *device, uint64_t handle)
{
    if (yoke_status status = check_device(device, "vmm_destroy")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(handle);
    if (!chunk)
        return fail(YOKE_E_CLOSED,
                    "cpu: vmm_destroy was given a handle that is not an existing chunk");
    if (chunk->mapped) return fail(YOKE_E_STATE, "cpu: the chunk is still mapped; unmap it first");
    if (munmap(pages_of(chunk), chunk->place.bytes))
        return fail_errno(YOKE_E_INTERNAL, "cpu: releasing a chunk", chunk->place.bytes);
    strike_off(chunk);
    delete chunk;
    return YOKE_OK;
}

yoke_status vmm_map(void *device, void *address, uint64_t bytes, uint64_t handle)
{
    if (yoke_status status = check_size(device, bytes, "vmm_map")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(handle);
    if (!chunk)
        return fail(YOKE_E_CLOSED, "cpu: vmm_map was given a handle that is not an existing chunk");
    if (chunk->mapped) return fail(YOKE_E_STATE, "cpu: the chunk is already mapped elsewhere");
    if (find_mapped(address, bytes))
        return fail(YOKE_E_STATE, "cpu: another chunk is mapped in that range; unmap it first");
    if (chunk->place.bytes != bytes)
        return fail(YOKE_E_VALUE, "cpu: vmm_map of %llu bytes, but the chunk has %llu",
                    (unsigned long long)bytes, (unsigned long long)chunk->place.bytes);
    char *home = pages_of(chunk);
    chunk->place.begin = reinterpret_cast<uintptr_t>(address);
    if (!g_mapped.insert(&chunk->place)) {
        chunk->place.begin = reinterpret_cast<uintptr_t>(home);
        return fail(YOKE_E_OOM, "cpu: no host memory for the list of mapped chunks");
    }
    if (mremap(home, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) == MAP_FAILED) {
        yoke_status status = fail_errno(YOKE_E_OOM, "cpu: mapping a chunk", bytes);
        g_mapped.erase(&chunk->place);
        chunk->place.begin = reinterpret_cast<uintptr_t>(home);
        return status;
    }
    madvise(address, bytes, MADV_HUGEPAGE);
    chunk->mapped = true;
    return YOKE_OK;
}

// Moves the pages to other addresses. The old range stays reserved: the kernel keeps it (DONTUNMAP, Linux 5.7). So no
// other thread's mmap can take the range before it is inaccessible.
static yoke_status move_away(Chunk *chunk)
{
    char *place = pages_of(chunk);
    const uint64_t bytes = chunk->place.bytes;
    void *home = new_aligned_pages(bytes, PROT_NONE);
    if (home == MAP_FAILED) return fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", bytes);
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    void *moved = MAP_FAILED;
#ifdef MREMAP_DONTUNMAP
    moved = mremap(place, bytes, bytes, flags | MREMAP_DONTUNMAP, home);
#endif
    if (moved == MAP_FAILED) moved = mremap(place, bytes, bytes, flags, home);
    if (moved == MAP_FAILED) {
        yoke_status status = fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", bytes);
        munmap(home, bytes);
        return status;
    }
    if (new_pages(place, bytes, PROT_NONE) == MAP_FAILED) {
        yoke_status status = fail_errno(YOKE_E_OOM, "cpu: unmapping a chunk", bytes);
        mremap(home, bytes, bytes, flags, place);  // the chunk stays mapped
        return status;
    }
    g_mapped.erase(&chunk->place);
    chunk->place.begin = reinterpret_cast<uintptr_t>(home);
    chunk->mapped = false;
    return YOKE_OK;
}

yoke_status vmm_unmap(void *device, void *address, uint64_t bytes)
{
    if (yoke_status status = check_size(device, bytes, "vmm_unmap")) return status;
    std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_mapped(address, bytes);
    if (!chunk || pages_of(chunk) != address || chunk->place.bytes != bytes)
        return fail(YOKE_E_VALUE,
                    "cpu: vmm_unmap of %llu bytes at an address where no such chunk is mapped",
                    (unsigned long long)bytes);
    return move_away(chunk);
}

}  // namespace yoke::cpu
