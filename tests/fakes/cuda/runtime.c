/*
 * The runtime calls that the CUDA module makes, linked into a copy of it in place of cudart. See fake.h.
 * Work is done at once in the caller, so streams are always idle and events always reached.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct CUstream_st {
    int device;
};
struct CUevent_st {
    int device, timed;
    struct timespec recorded; /* of tv_sec 0: never */
};

static __thread cudaError_t last_error;

/* The device whose context is current, or -1. As the true runtime does, this asks the library that is loaded. */
static int current_device(void)
{
    static volatile int told;
    CUresult (*get_device)(CUdevice *) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    CUdevice device = -1;
    if (!library) return -1;
    *(void **)&get_device = dlsym(library, "cuCtxGetDevice");
    if (get_device(&device) != CUDA_SUCCESS) device = -1;
    if (!told) {
        fake_enqueue_fn *place = (fake_enqueue_fn *)dlsym(library, "fake_runtime_enqueue");
        if (place) *place = fake_enqueue;
        told = 1;
    }
    dlclose(library);
    return device;
}

static cudaError_t end(cudaError_t error)
{
    if (error != cudaSuccess) last_error = error;
    return error;
}

/* Ends a call that is to fail, or that was made without a context. */
#define ENTER()                                                             \
    do {                                                                    \
        const int fault_ = fake_fault(__func__);                            \
        if (fault_) return end((cudaError_t)fault_);                        \
        if (current_device() < 0) return end(cudaErrorDeviceUninitialized); \
    } while (0)

/* ---- Errors and devices ------------------------------------------------------------------------------------------- */

const char *cudaGetErrorName(cudaError_t error)
{
    static __thread char text[32];
    snprintf(text, sizeof text, "cudaErrorFake%d", (int)error);
    return text;
}

const char *cudaGetErrorString(cudaError_t error)
{
    (void)error;
    return "a failure that the test asked for";
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    ENTER();
    if (device != current_device()) return end(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "Fake GPU %d", device);
    memset(prop->uuid.bytes, 0xA0 + device, sizeof prop->uuid.bytes);
    prop->pciDomainID = 0;
    prop->pciBusID = 0x65 + device;
    prop->pciDeviceID = 0;
    prop->totalGlobalMem = FAKE_MEMORY;
    prop->multiProcessorCount = 132;
    prop->major = 9;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER();
    return cudaSuccess;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

enum { MAX_BLOCKS = 4096 };
static struct {
    void *place;
    size_t bytes;
    int device; /* -1: the host's, pinned */
} blocks[MAX_BLOCKS];
static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER;

/* With the mutex held. Of place NULL, a free record. */
static int find_block(const void *place)
{
    int i = 0;
    while (i < MAX_BLOCKS && blocks[i].place != place) ++i;
    return i;
}

static size_t used_by(int device)
{
    size_t used = 0;
    for (int i = 0; i < MAX_BLOCKS; ++i)
        if (blocks[i].place && blocks[i].device == device) used += blocks[i].bytes;
    return used;
}

static cudaError_t take(void **place, size_t bytes, int device)
{
    cudaError_t error = cudaErrorMemoryAllocation;
    pthread_mutex_lock(&blocks_mutex);
    const int i = find_block(NULL);
    void *block = NULL;
    if (i < MAX_BLOCKS && bytes <= FAKE_MEMORY - used_by(device))
        block = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (block) {
        blocks[i].place = *place = block;
        blocks[i].bytes = bytes;
        blocks[i].device = device;
        error = cudaSuccess;
    }
    pthread_mutex_unlock(&blocks_mutex);
    return end(error);
}

static cudaError_t give(void *place, int device)
{
    cudaError_t error = cudaErrorInvalidValue;
    pthread_mutex_lock(&blocks_mutex);
    const int i = find_block(place);
    if (place && i < MAX_BLOCKS &&
        (blocks[i].device == device || (device >= 0 && blocks[i].device >= 0))) {
        free(place);
        blocks[i].place = NULL;
        error = cudaSuccess;
    }
    pthread_mutex_unlock(&blocks_mutex);
    return end(error);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    pthread_mutex_lock(&blocks_mutex);
    *free_bytes = FAKE_MEMORY - used_by(current_device());
    pthread_mutex_unlock(&blocks_mutex);
    *total = FAKE_MEMORY;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **place, size_t bytes)
{
    ENTER();
    return take(place, bytes, current_device());
}

cudaError_t cudaFree(void *place)
{
    ENTER();
    return give(place, current_device());
}

cudaError_t cudaHostAlloc(void **place, size_t bytes, unsigned flags)
{
    ENTER();
    return flags == cudaHostAllocPortable ? take(place, bytes, -1) : end(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *place)
{
    ENTER();
    return give(place, -1);
}

/* ---- Streams ------------------------------------------------------------------------------------------------------ */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    ENTER();
    if (flags != cudaStreamNonBlocking || priority > 0 || priority < -5)
        return end(cudaErrorInvalidValue);
    *stream = malloc(sizeof **stream);
    (*stream)->device = current_device();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ENTER();
    free(stream);
    return cudaSuccess;
}

/* A stream serves only while its device's context is current. */
static cudaError_t check_stream(cudaStream_t stream)
{
    return stream && stream->device != current_device() ? end(cudaErrorInvalidResourceHandle)
                                                        : cudaSuccess;
}

cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                         void (*drop)(void *), void *context)
{
    int error = fake_fault(call);
    if (!error && current_device() < 0) error = cudaErrorDeviceUninitialized;
    if (!error) error = check_stream(stream);
    if (!error) error = work(context);
    drop(context);
    return end((cudaError_t)error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER();
    return check_stream(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER();
    return check_stream(stream);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    ENTER();
    *status = cudaStreamCaptureStatusNone;
    return check_stream(stream);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    ENTER();
    if (kind == cudaMemcpyHostToHost) return end(cudaErrorInvalidMemcpyDirection);
    if (check_stream(stream) != cudaSuccess) return last_error;
    memcpy(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    if (check_stream(stream) != cudaSuccess) return last_error;
    memset(dst, value, bytes);
    return cudaSuccess;
}

/* ---- Events ------------------------------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ENTER();
    *event = calloc(1, sizeof **event);
    (*event)->device = current_device();
    (*event)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ENTER();
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER();
    if (check_stream(stream) != cudaSuccess || event->device != current_device())
        return end(cudaErrorInvalidResourceHandle);
    clock_gettime(CLOCK_MONOTONIC, &event->recorded);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ENTER();
    return flags || !event ? end(cudaErrorInvalidValue) : check_stream(stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER();
    return event ? cudaSuccess : end(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER();
    return event ? cudaSuccess : end(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last)
{
    ENTER();
    if (!first->timed || !last->timed || !first->recorded.tv_sec || !last->recorded.tv_sec)
        return end(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)(last->recorded.tv_sec - first->recorded.tv_sec) * 1e3f +
                    (float)(last->recorded.tv_nsec - first->recorded.tv_nsec) * 1e-6f;
    return cudaSuccess;
}
