// Virtual memory by the driver's cuMem calls. CUDA lets a chunk be mapped twice and freed while it is
// mapped; the contract does not, so each chunk has a record here.
#include <atomic>
#include <mutex>
#include <new>

#include "kernels/common/ranges.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"
#include "kernels/cuda/host/vmm.h"

namespace yoke::cuda {

namespace {

struct Chunk {
    kernels::Range id;     // a single number
    kernels::Range place;  // bytes: size of the chunk; begin: 0 if not mapped
    int device;            // CUDA's number
    CUmemGenericAllocationHandle handle;
};

// All chunks by their ids, mapped chunks by their places, and the lock of both sets.
std::mutex g_mutex;
kernels::Ranges g_chunks, g_mapped;
uint64_t g_last_id = 0;
uint64_t g_readers[kMaxDevices];  // readers of each device's chunks: a bit for each number of CUDA

using Count = unsigned long long;

Chunk *chunk_of(const kernels::Range *range)
{
    return range ? static_cast<Chunk *>(range->owner) : nullptr;
}

Chunk *find_chunk(uint64_t id)
{
    return chunk_of(g_chunks.find(id, 1));
}

// Returns a chunk that is mapped somewhere in [begin, begin + bytes), or null.
Chunk *find_mapped(CUdeviceptr begin, uint64_t bytes)
{
    return chunk_of(g_mapped.find(begin, bytes));
}

uint64_t bit_of(int number)
{
    return uint64_t{1} << number;
}

// Returns whether the device has an attribute. If an older driver does not know the attribute, returns false. Other
// failures are logged and also give false.
bool can(const Device &device, CUdevice_attribute what)
{
    int value = 0;
    const CUresult error = driver().call.cuDeviceGetAttribute(&value, what, device.number);
    if (error != CUDA_ERROR_INVALID_VALUE) log_failure(device, error, "cuDeviceGetAttribute");
    return !error && value;
}

// Bits of what a device's chunks can be used for; the driver is asked once.
enum : uint8_t { kIsKnown = 1, kIsExportable = 2, kIsForNetworkCards = 4 };
std::atomic<uint8_t> g_abilities[kMaxDevices];

uint8_t abilities_of(const Device &device)
{
    std::atomic<uint8_t> &place = g_abilities[device.number];
    if (const uint8_t known = place.load(std::memory_order_relaxed)) return known;
    uint8_t found = kIsKnown;
    if (can(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        found |= kIsExportable;
    if (can(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED))
        found |= kIsForNetworkCards;
    place.store(found, std::memory_order_relaxed);
    return found;
}

// Returns a chunk's properties. If the device supports it, a chunk can be passed to other processes
// (cudaIpcGetMemHandle refuses chunks), and network cards may read the chunk.
CUmemAllocationProp properties(const Device &device)
{
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device.number;
    const uint8_t abilities = abilities_of(device);
    if (abilities & kIsExportable)
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (abilities & kIsForNetworkCards) prop.allocFlags.gpuDirectRDMACapable = 1;
    return prop;
}

CUresult create(const Device &device, uint64_t bytes, CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = properties(device);
    const CUresult error = driver().call.cuMemCreate(handle, bytes, &prop, 0);
    const bool is_forbidden =
        error == CUDA_ERROR_NOT_PERMITTED || error == CUDA_ERROR_NOT_SUPPORTED;
    if (!is_forbidden || !(prop.requestedHandleTypes || prop.allocFlags.gpuDirectRDMACapable))
        return error;
    log_failure(
        device, error,
        "cuMemCreate of memory that other processes and network cards may use (memory without this ability is used)");
    g_abilities[device.number].store(kIsKnown, std::memory_order_relaxed);
    prop = properties(device);
    return driver().call.cuMemCreate(handle, bytes, &prop, 0);
}

yoke_status granularity(const Scope &scope, uint64_t *bytes)
{
    const CUmemAllocationProp prop = properties(scope.device());
    size_t found = 0;
    const CUresult error = driver().call.cuMemGetAllocationGranularity(
        &found, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (const yoke_status status = scope.check(error, "cuMemGetAllocationGranularity"))
        return status;
    *bytes = found;
    return YOKE_OK;
}

// Lets devices read and write a mapped chunk. `devices` has a bit for each of CUDA's numbers.
CUresult open(const Chunk &chunk, uint64_t devices)
{
    CUmemAccessDesc access[kMaxDevices] = {};
    size_t count = 0;
    for (int number = 0; number < kMaxDevices; ++number)
        if (devices & bit_of(number))
            access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, number},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return driver().call.cuMemSetAccess(chunk.place.begin, chunk.place.bytes, access, count);
}

yoke_status check_size(const Scope &scope, uint64_t bytes, const char *call)
{
    if (scope.status()) return scope.status();
    uint64_t unit = 0;
    if (const yoke_status status = granularity(scope, &unit)) return status;
    if (bytes && bytes % unit == 0) return YOKE_OK;
    return scope.refuse(YOKE_E_VALUE, "%s got %llu bytes; use a multiple of %llu", call,
                        static_cast<Count>(bytes), static_cast<Count>(unit));
}

}  // namespace

void open_chunks(const Device &reader, int owner)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_readers[owner] |= bit_of(reader.number);
    CUresult failed = CUDA_SUCCESS;
    g_mapped.each([&](const kernels::Range &place) {
        const Chunk &chunk = *chunk_of(&place);
        if (chunk.device != owner) return;
        if (const CUresult error = open(chunk, bit_of(reader.number))) failed = error;
    });
    if (failed) g_readers[owner] &= ~bit_of(reader.number);
    log_failure(reader, failed, "cuMemSetAccess for a peer");
}

void close_chunks(const Device &device)
{
    const std::lock_guard<std::mutex> lock(g_mutex);
    g_readers[device.number] = 0;
    for (uint64_t &readers : g_readers) readers &= ~bit_of(device.number);
}

yoke_status vmm_granularity(void *device, uint64_t *bytes)
{
    const RelaxedScope scope(device, "vmm_granularity");
    if (scope.status()) return scope.status();
    return granularity(scope, bytes);
}

yoke_status vmm_reserve(void *device, uint64_t bytes, void **address)
{
    const RelaxedScope scope(device, "vmm_reserve");
    if (const yoke_status status = check_size(scope, bytes, "vmm_reserve")) return status;
    CUdeviceptr start = 0;
    if (const yoke_status status =
            scope.check(driver().call.cuMemAddressReserve(&start, bytes, 0, 0, 0),
                        "cuMemAddressReserve of %llu bytes", static_cast<Count>(bytes)))
        return status;
    *address = reinterpret_cast<void *>(start);
    return YOKE_OK;
}

yoke_status vmm_release(void *device, void *address, uint64_t bytes)
{
    const RelaxedScope scope(device, "vmm_release");
    if (const yoke_status status = check_size(scope, bytes, "vmm_release")) return status;
    const auto start = reinterpret_cast<CUdeviceptr>(address);
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (find_mapped(start, bytes))
        return scope.refuse(YOKE_E_STATE,
                            "a chunk is still mapped in the range to release; unmap it first");
    return scope.check(driver().call.cuMemAddressFree(start, bytes),
                       "cuMemAddressFree of %llu bytes", static_cast<Count>(bytes));
}

yoke_status vmm_create(void *device, uint64_t bytes, uint64_t *chunk)
{
    const RelaxedScope scope(device, "vmm_create");
    if (const yoke_status status = check_size(scope, bytes, "vmm_create")) return status;
    Chunk *made =
        new (std::nothrow) Chunk{{0, 1, nullptr}, {0, bytes, nullptr}, scope.device().number, 0};
    if (!made) return scope.refuse(YOKE_E_OOM, "no host memory for a chunk's record");
    made->id.owner = made->place.owner = made;
    if (const yoke_status status =
            scope.check(create(scope.device(), bytes, &made->handle), "cuMemCreate of %llu bytes",
                        static_cast<Count>(bytes))) {
        delete made;
        return status;
    }
    const std::lock_guard<std::mutex> lock(g_mutex);
    made->id.begin = ++g_last_id;
    if (!g_chunks.insert(&made->id)) {
        log_failure(scope.device(), driver().call.cuMemRelease(made->handle),
                    "vmm_create: cuMemRelease");
        delete made;
        return scope.refuse(YOKE_E_OOM, "no host memory for the list of chunks");
    }
    *chunk = made->id.begin;
    return YOKE_OK;
}

yoke_status vmm_destroy(void *device, uint64_t id)
{
    const RelaxedScope scope(device, "vmm_destroy");
    if (scope.status()) return scope.status();
    const std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(id);
    if (!chunk)
        return scope.refuse(YOKE_E_CLOSED,
                            "vmm_destroy was given a handle that is not an existing chunk");
    if (chunk->place.begin)
        return scope.refuse(YOKE_E_STATE, "the chunk to destroy is still mapped; unmap it first");
    if (const yoke_status status =
            scope.check(driver().call.cuMemRelease(chunk->handle), "cuMemRelease of %llu bytes",
                        static_cast<Count>(chunk->place.bytes)))
        return status;
    g_chunks.erase(&chunk->id);
    delete chunk;
    return YOKE_OK;
}

// Reports the failure that prevents a map, and returns its status. Returns YOKE_OK if the chunk can be mapped.
static yoke_status check_map(const Scope &scope, const Chunk *chunk, CUdeviceptr start,
                             uint64_t bytes)
{
    if (!chunk)
        return scope.refuse(YOKE_E_CLOSED,
                            "vmm_map was given a handle that is not an existing chunk");
    if (chunk->place.begin)
        return scope.refuse(YOKE_E_STATE, "the chunk is already mapped elsewhere");
    if (chunk->place.bytes != bytes)
        return scope.refuse(YOKE_E_VALUE, "vmm_map of %llu bytes, but the chunk has %llu",
                            static_cast<Count>(bytes), static_cast<Count>(chunk->place.bytes));
    if (find_mapped(start, bytes))
        return scope.refuse(YOKE_E_STATE, "another chunk is mapped there; unmap it first");
    return YOKE_OK;
}

yoke_status vmm_map(void *device, void *address, uint64_t bytes, uint64_t id)
{
    const RelaxedScope scope(device, "vmm_map");
    if (const yoke_status status = check_size(scope, bytes, "vmm_map")) return status;
    const DriverCalls &call = driver().call;
    const auto start = reinterpret_cast<CUdeviceptr>(address);
    const std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(id);
    if (const yoke_status status = check_map(scope, chunk, start, bytes)) return status;
    chunk->place.begin = start;
    const auto forget = [chunk] {
        g_mapped.erase(&chunk->place);
        chunk->place.begin = 0;
    };
    if (!g_mapped.insert(&chunk->place)) {
        chunk->place.begin = 0;
        return scope.refuse(YOKE_E_OOM, "no host memory for the list of mapped chunks");
    }
    if (const yoke_status status =
            scope.check(call.cuMemMap(start, bytes, 0, chunk->handle, 0), "cuMemMap of %llu bytes",
                        static_cast<Count>(bytes))) {
        forget();
        return status;
    }
    if (const yoke_status status =
            scope.check(open(*chunk, bit_of(chunk->device)), "cuMemSetAccess of %llu bytes",
                        static_cast<Count>(bytes))) {
        const CUresult error = call.cuMemUnmap(start, bytes);
        log_failure(scope.device(), error, "vmm_map: cuMemUnmap");
        if (!error) forget();  // else vmm_unmap may try again
        return status;
    }
    if (g_readers[chunk->device])
        log_failure(scope.device(), open(*chunk, g_readers[chunk->device]),
                    "cuMemSetAccess for peers");
    return YOKE_OK;
}

yoke_status vmm_unmap(void *device, void *address, uint64_t bytes)
{
    const RelaxedScope scope(device, "vmm_unmap");
    if (const yoke_status status = check_size(scope, bytes, "vmm_unmap")) return status;
    const auto start = reinterpret_cast<CUdeviceptr>(address);
    const std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_mapped(start, bytes);
    if (!chunk || chunk->place.begin != start || chunk->place.bytes != bytes)
        return scope.refuse(YOKE_E_VALUE,
                            "vmm_unmap of %llu bytes at an address where no such chunk is mapped",
                            static_cast<Count>(bytes));
    if (const yoke_status status =
            scope.check(driver().call.cuMemUnmap(start, bytes), "cuMemUnmap of %llu bytes",
                        static_cast<Count>(bytes)))
        return status;
    g_mapped.erase(&chunk->place);
    chunk->place.begin = 0;
    return YOKE_OK;
}

}  // namespace yoke::cuda
