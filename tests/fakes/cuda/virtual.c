/* Virtual memory of the fake driver: a chunk is a part of a memory file, and mapping a chunk maps this part. The pages
 * are charged to the device from cuMemCreate until the chunk is both released and unmapped. See fake.h. */
#define _GNU_SOURCE
#include "driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"
#include "machine.h"

#define GRANULARITY ((size_t)2 << 20)

struct chunk {
    int device, maps, released, shareable;
    size_t bytes;
    off_t offset;
};
struct map {
    CUdeviceptr place;
    size_t bytes;
    struct chunk *chunk;
    uint64_t open; /* a bit for each device with access */
};
/* Trees of tsearch(3): chunks by address, equal to the handle, and maps by place. */
static void *chunks, *maps;
/* End of the last chunk ever made. Parts of the file are not used again, and a hole takes no memory. */
static off_t file_end;
static int file = -1;
static size_t charged[FAKE_MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Ends a call with an ordered failure. */
#define ENTER_ALIVE(call)                       \
    do {                                        \
        const CUresult why_ = fake_begin(call); \
        if (why_) return why_;                  \
    } while (0)

size_t fake_chunks_of(int device)
{
    return __atomic_load_n(&charged[device], __ATOMIC_SEQ_CST);
}

static void charge(int device, size_t bytes)
{
    __atomic_add_fetch(&charged[device], bytes, __ATOMIC_SEQ_CST);
}

/* Returns the memory left for a chunk. Before the first call the runtime has taken no memory. */
static size_t left_of(int device)
{
    if (fake_runtime_calls.left) return fake_runtime_calls.left(device);
    const size_t used = fake_chunks_of(device);
    return used < fake_memory() ? fake_memory() - used : 0;
}

static int by_address(const void *a, const void *b)
{
    return a < b ? -1 : a > b;
}

/* Compares maps by place; overlapping maps count as equal. */
static int by_place(const void *a, const void *b)
{
    const struct map *left = a, *right = b;
    if (left->place + left->bytes <= right->place) return -1;
    return right->place + right->bytes <= left->place;
}

/* Returns the chunk of an unreleased handle. */
static struct chunk *find_chunk(CUmemGenericAllocationHandle handle)
{
    struct chunk **found = tfind((const void *)handle, &chunks, by_address);
    return found && !(*found)->released ? *found : NULL;
}

/* Returns a map overlapping these bytes. */
static struct map *find_map(CUdeviceptr place, size_t bytes)
{
    const struct map wanted = {.place = place, .bytes = bytes};
    struct map **found = tfind(&wanted, &maps, by_place);
    return found ? *found : NULL;
}

EXPORT int fake_chunk_at(const void *place, uint64_t *open)
{
    pthread_mutex_lock(&mutex);
    const struct map *const map = find_map((CUdeviceptr)place, 1);
    const int device = map ? map->chunk->device : -1;
    if (map) *open = map->open;
    pthread_mutex_unlock(&mutex);
    return device;
}

/* Gives memory back if neither the handle nor a map holds the chunk any more. */
static void drop(struct chunk *chunk)
{
    if (!chunk->released || chunk->maps) return;
    tdelete(chunk, &chunks, by_address);
    charge(chunk->device, -chunk->bytes);
    (void)!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunk->offset,
                     (off_t)chunk->bytes);
    free(chunk);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags option)
{
    ENTER_ALIVE("cuMemGetAllocationGranularity");
    (void)option;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

static void *reserve(void *place, size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED : 0);
    return mmap(place, bytes, PROT_NONE, flags, -1, 0);
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *place, size_t bytes, size_t alignment,
                                    CUdeviceptr hint, unsigned long long flags)
{
    ENTER_ALIVE("cuMemAddressReserve");
    (void)hint;
    if (alignment || flags || bytes % GRANULARITY) return CUDA_ERROR_INVALID_VALUE;
    char *const found = reserve(NULL, bytes + GRANULARITY);
    if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t before = -(uintptr_t)found % GRANULARITY;
    if (before) munmap(found, before);
    munmap(found + before + bytes, GRANULARITY - before);
    *place = (CUdeviceptr)(found + before);
    fake_hold(FAKE_RANGES, 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr place, size_t bytes)
{
    ENTER_ALIVE("cuMemAddressFree");
    if (munmap((void *)place, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fake_hold(FAKE_RANGES, -1);
    return CUDA_SUCCESS;
}

/* With the mutex held. */
static CUresult make(struct chunk **chunk, size_t bytes, int device)
{
    if (file < 0) file = memfd_create("chunks of fake GPUs", MFD_CLOEXEC);
    struct chunk *const made = calloc(1, sizeof *made);
    if (file < 0 || !made || ftruncate(file, file_end + (off_t)bytes) ||
        !tsearch(made, &chunks, by_address)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct chunk){.device = device, .bytes = bytes, .offset = file_end};
    file_end += (off_t)bytes;
    charge(device, bytes);
    *chunk = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct chunk *chunk = NULL;
    ENTER_ALIVE("cuMemCreate");
    if (flags || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || !bytes || bytes % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.id < 0 || prop->location.id >= fake_machine_count())
        return CUDA_ERROR_INVALID_DEVICE;
    /* Before the mutex: the runtime looks for chunks with the runtime's lock held. */
    if (bytes > left_of(prop->location.id)) return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&mutex);
    const CUresult result = make(&chunk, bytes, prop->location.id);
    pthread_mutex_unlock(&mutex);
    if (result) return result;
    chunk->shareable = prop->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                       prop->allocFlags.gpuDirectRDMACapable;
    *handle = (CUmemGenericAllocationHandle)chunk;
    fake_hold(FAKE_CHUNKS, 1);
    fake_hold(FAKE_SHAREABLE, chunk->shareable);
    return CUDA_SUCCESS;
}

/* Releases a handle; mapped memory stays. */
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER_ALIVE("cuMemRelease");
    pthread_mutex_lock(&mutex);
    struct chunk *const chunk = find_chunk(handle);
    if (chunk) {
        chunk->released = 1;
        fake_hold(FAKE_SHAREABLE, -chunk->shareable);
        drop(chunk);
        fake_hold(FAKE_CHUNKS, -1);
    }
    pthread_mutex_unlock(&mutex);
    return chunk ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemMap(CUdeviceptr place, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    ENTER_ALIVE("cuMemMap");
    if (flags || offset || bytes % GRANULARITY) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    struct chunk *const chunk = find_chunk(handle);
    struct map *const map =
        chunk && bytes <= chunk->bytes && !find_map(place, bytes) ? malloc(sizeof *map) : NULL;
    if (map) {
        *map = (struct map){.place = place, .bytes = bytes, .chunk = chunk};
        if (mmap((void *)place, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, chunk->offset) !=
                MAP_FAILED &&
            tsearch(map, &maps, by_place)) {
            ++chunk->maps;
            fake_hold(FAKE_MAPS, 1);
            result = CUDA_SUCCESS;
        } else {
            free(map);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr place, size_t bytes)
{
    ENTER_ALIVE("cuMemUnmap");
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    struct map *const map = find_map(place, bytes);
    if (map && map->place == place && map->bytes == bytes &&
        reserve((void *)place, bytes) != MAP_FAILED) {
        tdelete(map, &maps, by_place);
        --map->chunk->maps;
        drop(map->chunk);
        free(map);
        fake_hold(FAKE_MAPS, -1);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr place, size_t bytes, const CUmemAccessDesc *access,
                               size_t count)
{
    ENTER_ALIVE("cuMemSetAccess");
    uint64_t open = 0;
    for (size_t i = 0; i < count; ++i) {
        if (access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
        if (access[i].location.id < 0 || access[i].location.id >= fake_machine_count())
            return CUDA_ERROR_INVALID_DEVICE;
        open |= (uint64_t)1 << access[i].location.id;
    }
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    struct map *const map = count ? find_map(place, bytes) : NULL;
    if (map && map->place == place && map->bytes == bytes &&
        !mprotect((void *)place, bytes, PROT_READ | PROT_WRITE)) {
        map->open |= open;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
