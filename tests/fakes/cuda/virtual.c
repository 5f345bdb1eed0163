/* Virtual memory of the fake driver: a chunk is a memory file, mapping it maps the file. Its pages are charged to the
 * device from cuMemCreate until it is both released and unmapped. See fake.h. */
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"
#include "machine.h"

#define MAX_MAPS 64
#define GRANULARITY ((size_t)2 << 20)

struct chunk {
    int file, device, maps, released;
    size_t bytes;
    struct chunk *next;
};
static struct chunk *chunks;
static size_t charged[FAKE_MAX_DEVICES];
static struct {
    CUdeviceptr place;
    size_t bytes;
    struct chunk *chunk;
} maps[MAX_MAPS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Ends a call that is to fail. */
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

/* What is left for a chunk. Before its first call the runtime has taken nothing. */
static size_t left_of(int device)
{
    if (fake_runtime_calls.left) return fake_runtime_calls.left(device);
    const size_t used = fake_chunks_of(device);
    return used < fake_memory() ? fake_memory() - used : 0;
}

/* The chunk of a handle that was not released. */
static struct chunk *find_chunk(CUmemGenericAllocationHandle handle)
{
    struct chunk *chunk = chunks;
    while (chunk && (chunk != (struct chunk *)handle || chunk->released)) chunk = chunk->next;
    return chunk;
}

/* Gives memory back that nobody holds any more: neither the handle nor a map. */
static void drop(struct chunk *chunk)
{
    struct chunk **link = &chunks;
    if (!chunk->released || chunk->maps) return;
    while (*link != chunk) link = &(*link)->next;
    *link = chunk->next;
    charge(chunk->device, -chunk->bytes);
    close(chunk->file);
    free(chunk);
}

/* The map that begins at a place; of place 0, a free one. */
static int find_map(CUdeviceptr place)
{
    int i = 0;
    while (i < MAX_MAPS && maps[i].place != place) ++i;
    return i;
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
    void *start = reserve(NULL, bytes);
    if (start == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *place = (CUdeviceptr)start;
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
    if (bytes > left_of(device)) return CUDA_ERROR_OUT_OF_MEMORY;
    const int file = memfd_create("a chunk of a fake GPU", MFD_CLOEXEC);
    struct chunk *const made = calloc(1, sizeof *made);
    if (file < 0 || !made || ftruncate(file, (off_t)bytes)) {
        if (file >= 0) close(file);
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct chunk){.file = file, .device = device, .bytes = bytes, .next = chunks};
    charge(device, bytes);
    *chunk = chunks = made;
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
    pthread_mutex_lock(&mutex);
    const CUresult result = make(&chunk, bytes, prop->location.id);
    pthread_mutex_unlock(&mutex);
    if (result) return result;
    *handle = (CUmemGenericAllocationHandle)chunk;
    fake_hold(FAKE_CHUNKS, 1);
    return CUDA_SUCCESS;
}

/* The memory stays while it is mapped. */
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER_ALIVE("cuMemRelease");
    pthread_mutex_lock(&mutex);
    struct chunk *const chunk = find_chunk(handle);
    if (chunk) {
        chunk->released = 1;
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
    const int map = find_map(0);
    if (chunk && bytes <= chunk->bytes && map < MAX_MAPS && find_map(place) == MAX_MAPS &&
        mmap((void *)place, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, chunk->file, 0) !=
            MAP_FAILED) {
        maps[map].place = place;
        maps[map].bytes = bytes;
        maps[map].chunk = chunk;
        ++chunk->maps;
        fake_hold(FAKE_MAPS, 1);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr place, size_t bytes)
{
    ENTER_ALIVE("cuMemUnmap");
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    const int map = find_map(place);
    if (map < MAX_MAPS && maps[map].bytes == bytes && reserve((void *)place, bytes) != MAP_FAILED) {
        maps[map].place = 0;
        --maps[map].chunk->maps;
        drop(maps[map].chunk);
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
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    return mprotect((void *)place, bytes, PROT_READ | PROT_WRITE) ? CUDA_ERROR_INVALID_VALUE
                                                                  : CUDA_SUCCESS;
}
