// Plain device memory and pinned host memory.
#include <unistd.h>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

// Refuses 0 bytes, and as out of memory more bytes than the hardware has. CUDA may report another error, because some
// sizes wrap around when CUDA rounds up.
static yoke_status check_size(const Scope &scope, uint64_t bytes, uint64_t all, const char *whose)
{
    if (bytes == 0)
        return scope.refuse(YOKE_E_VALUE, "an allocation of 0 bytes; the size must be above 0");
    if (bytes <= all) return YOKE_OK;
    return scope.refuse(YOKE_E_OOM, "%llu bytes were requested, but the %s has only %llu",
                        static_cast<unsigned long long>(bytes), whose,
                        static_cast<unsigned long long>(all));
}

yoke_status alloc(void *device, uint64_t bytes, void **pointer)
{
    const RelaxedScope scope(device, "alloc");
    if (scope.status()) return scope.status();
    if (const yoke_status status = check_size(scope, bytes, scope.device().total_memory, "device"))
        return status;
    void *block = nullptr;
    if (const yoke_status status =
            scope.check(cudaMalloc(&block, bytes), "cudaMalloc of %llu bytes",
                        static_cast<unsigned long long>(bytes)))
        return status;
    *pointer = block;
    return YOKE_OK;
}

yoke_status free_block(void *device, void *pointer, uint64_t bytes)
{
    const RelaxedScope scope(device, "free");
    if (scope.status()) return scope.status();
    return scope.check(cudaFree(pointer), "cudaFree of %llu bytes",
                       static_cast<unsigned long long>(bytes));
}

yoke_status host_alloc(void *device, uint64_t bytes, void **pointer)
{
    const RelaxedScope scope(device, "host_alloc");
    if (scope.status()) return scope.status();
    const auto all = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (const yoke_status status = check_size(scope, bytes, all, "host")) return status;
    void *block = nullptr;
    // Portable: pinned for every device of the process, not for this one alone.
    if (const yoke_status status =
            scope.check(cudaHostAlloc(&block, bytes, cudaHostAllocPortable),
                        "cudaHostAlloc of %llu bytes", static_cast<unsigned long long>(bytes)))
        return status;
    *pointer = block;
    return YOKE_OK;
}

yoke_status host_free(void *device, void *pointer, uint64_t bytes)
{
    const RelaxedScope scope(device, "host_free");
    if (scope.status()) return scope.status();
    return scope.check(cudaFreeHost(pointer), "cudaFreeHost of %llu bytes",
                       static_cast<unsigned long long>(bytes));
}

}  // namespace yoke::cuda
