// Virtual memory by the driver's cuMem calls. CUDA lets a chunk be mapped twice and freed while it is
// mapped; the contract does not, so each chunk has a record here.
#include <mutex>
#include <new>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

namespace {

struct Chunk {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
    CUdeviceptr place;  // 0: not mapped
    Chunk *next;
};

// All chunks, and the lock of every change of a map.
std::mutex g_mutex;
Chunk *g_chunks = nullptr;

using Count = unsigned long long;

Chunk *find_chunk(uint64_t id)
{
    for (Chunk *chunk = g_chunks; chunk; chunk = chunk->next)
        if (reinterpret_cast<uint64_t>(chunk) == id) return chunk;
    return nullptr;
}

// The first chunk mapped inside [begin, begin + bytes).
Chunk *find_mapped(CUdeviceptr begin, uint64_t bytes)
{
    for (Chunk *chunk = g_chunks; chunk; chunk = chunk->next)
        if (chunk->place && chunk->place < begin + bytes && begin < chunk->place + chunk->bytes)
            return chunk;
    return nullptr;
}

CUmemAllocationProp properties(const Device &device)
{
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device.number;
    return prop;
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
    Chunk *made = new (std::nothrow) Chunk{0, bytes, 0, nullptr};
    if (!made) return scope.refuse(YOKE_E_OOM, "no host memory for a chunk's record");
    const CUmemAllocationProp prop = properties(scope.device());
    if (const yoke_status status =
            scope.check(driver().call.cuMemCreate(&made->handle, bytes, &prop, 0),
                        "cuMemCreate of %llu bytes", static_cast<Count>(bytes))) {
        delete made;
        return status;
    }
    const std::lock_guard<std::mutex> lock(g_mutex);
    made->next = g_chunks;
    g_chunks = made;
    *chunk = reinterpret_cast<uint64_t>(made);
    return YOKE_OK;
}

yoke_status vmm_destroy(void *device, uint64_t id)
{
    const RelaxedScope scope(device, "vmm_destroy");
    if (scope.status()) return scope.status();
    const std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_chunk(id);
    if (!chunk) return scope.refuse(YOKE_E_CLOSED, "vmm_destroy was given no live chunk");
    if (chunk->place)
        return scope.refuse(YOKE_E_STATE, "the chunk to destroy is still mapped; unmap it first");
    if (const yoke_status status =
            scope.check(driver().call.cuMemRelease(chunk->handle), "cuMemRelease of %llu bytes",
                        static_cast<Count>(chunk->bytes)))
        return status;
    Chunk **link = &g_chunks;
    while (*link != chunk) link = &(*link)->next;
    *link = chunk->next;
    delete chunk;
    return YOKE_OK;
}

// What stands in the way of a map.
static yoke_status check_map(const Scope &scope, const Chunk *chunk, CUdeviceptr start,
                             uint64_t bytes)
{
    if (!chunk) return scope.refuse(YOKE_E_CLOSED, "vmm_map was given no live chunk");
    if (chunk->place) return scope.refuse(YOKE_E_STATE, "the chunk is already mapped elsewhere");
    if (chunk->bytes != bytes)
        return scope.refuse(YOKE_E_VALUE, "vmm_map of %llu bytes, but the chunk has %llu",
                            static_cast<Count>(bytes), static_cast<Count>(chunk->bytes));
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
    if (const yoke_status status = scope.check(call.cuMemMap(start, bytes, 0, chunk->handle, 0),
                                               "cuMemMap of %llu bytes", static_cast<Count>(bytes)))
        return status;
    const CUmemAccessDesc access = {properties(scope.device()).location,
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (const yoke_status status =
            scope.check(call.cuMemSetAccess(start, bytes, &access, 1),
                        "cuMemSetAccess of %llu bytes", static_cast<Count>(bytes))) {
        const CUresult error = call.cuMemUnmap(start, bytes);
        log_failure(scope.device(), error, "vmm_map: cuMemUnmap");
        if (error) chunk->place = start;  // for vmm_unmap to try again
        return status;
    }
    chunk->place = start;
    return YOKE_OK;
}

yoke_status vmm_unmap(void *device, void *address, uint64_t bytes)
{
    const RelaxedScope scope(device, "vmm_unmap");
    if (const yoke_status status = check_size(scope, bytes, "vmm_unmap")) return status;
    const auto start = reinterpret_cast<CUdeviceptr>(address);
    const std::lock_guard<std::mutex> lock(g_mutex);
    Chunk *chunk = find_mapped(start, bytes);
    if (!chunk || chunk->place != start || chunk->bytes != bytes)
        return scope.refuse(YOKE_E_VALUE,
                            "vmm_unmap of %llu bytes at a place where no such chunk is mapped",
                            static_cast<Count>(bytes));
    if (const yoke_status status =
            scope.check(driver().call.cuMemUnmap(start, bytes), "cuMemUnmap of %llu bytes",
                        static_cast<Count>(bytes)))
        return status;
    chunk->place = 0;
    return YOKE_OK;
}

}  // namespace yoke::cuda
