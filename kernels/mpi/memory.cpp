#include "kernels/mpi/memory.h"

#include <algorithm>
#include <cstdint>

#include "kernels/mpi/job.h"

namespace yoke::mpi {

constexpr uint64_t kAlignment = 64;

yoke_status Memory::allocate(uint64_t bytes, void **pointer)
{
    if (!is_in_job())
        return fail(YOKE_E_STATE,
                    "mpi: mem_alloc was called in a process that has left its MPI job");
    void *whole = nullptr;
    const auto size = static_cast<MPI_Aint>(bytes + kAlignment);
    if (MPI_Alloc_mem(size, MPI_INFO_NULL, &whole) != MPI_SUCCESS || !whole)
        return fail(YOKE_E_OOM, "mpi: MPI_Alloc_mem cannot allocate %llu bytes",
                    static_cast<unsigned long long>(bytes));
    const auto address = reinterpret_cast<uintptr_t>(whole);
    void *data = reinterpret_cast<void *>((address + kAlignment - 1) / kAlignment * kAlignment);
    const std::lock_guard lock(mutex_);
    blocks_.push_back({data, whole});
    *pointer = data;
    return YOKE_OK;
}

yoke_status Memory::release(void *pointer)
{
    void *whole = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(blocks_, pointer, &Block::data);
        if (found == blocks_.end())
            return fail(YOKE_E_VALUE, "mpi: mem_free of %p, which mem_alloc did not return",
                        pointer);
        whole = found->whole;
        blocks_.erase(found);
    }
    if (is_in_job()) MPI_Free_mem(whole);  // after MPI's end, no code may free it
    return YOKE_OK;
}

}  // namespace yoke::mpi
