// Plain memory of the CPU: blocks of 64-byte alignment, large blocks straight from the system in huge pages. The
// whole team copies and fills large blocks.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "kernels/cpu/device.h"

namespace yoke::cpu {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kHugePage = 2u << 20;
// Smallest size mapped separately, at a huge page's boundary. Then the first touch of 2 MiB is a single fault instead
// of 512.
constexpr uint64_t kMapped = 2 * kHugePage;
constexpr uint64_t kCopyChunk = 1u << 20;

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

static void *map_aligned(uint64_t bytes)
{
    uint64_t padded = bytes + kHugePage;
    char *start = static_cast<char *>(
        mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (start == MAP_FAILED) return nullptr;
    uint64_t skipped = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
    if (skipped) munmap(start, skipped);
    if (skipped < kHugePage) munmap(start + skipped + bytes, kHugePage - skipped);
    madvise(start + skipped, bytes, MADV_HUGEPAGE);  // advice: without it the block works too
    return start + skipped;
}

yoke_status alloc(void *device, uint64_t bytes, void **pointer)
{
    if (yoke_status status = check_device(device, "alloc")) return status;
    if (bytes == 0) return fail(YOKE_E_VALUE, "cpu: alloc of 0 bytes; the size must be above 0");
    void *block = nullptr;
    if (bytes <= UINT64_MAX / 2) {
        // Unmapped blocks have the exact size: see core/memory/memory.h.
        if (bytes >= kMapped)
            block = map_aligned(round_up(bytes, kHugePage));
        else if (posix_memalign(&block, kAlignment, bytes))
            block = nullptr;
    }
    if (!block)
        return fail(YOKE_E_OOM, "cpu: the system does not have %llu bytes of free memory",
                    (unsigned long long)bytes);
    *pointer = block;
    return YOKE_OK;
}

yoke_status free_block(void *device, void *pointer, uint64_t bytes)
{
    if (yoke_status status = check_device(device, "free")) return status;
    if (bytes < kMapped)
        free(pointer);
    else if (munmap(pointer, round_up(bytes, kHugePage)))
        return fail_errno(YOKE_E_VALUE, "cpu: free", bytes);
    return YOKE_OK;
}

struct Range {
    char *to;
    const char *from;  // null: fill with `value`
    uint64_t bytes;
    uint8_t value;
};

static void run_range(void *context, int64_t index, int)
{
    const Range &range = *static_cast<const Range *>(context);
    uint64_t begin = static_cast<uint64_t>(index) * kCopyChunk;
    uint64_t bytes = range.bytes - begin < kCopyChunk ? range.bytes - begin : kCopyChunk;
    if (range.from)
        memcpy(range.to + begin, range.from + begin, bytes);
    else
        memset(range.to + begin, range.value, bytes);
}

yoke_status copy(void *device, void *dst, const void *src, uint64_t bytes, int32_t direction,
                 void *)
{
    if (yoke_status status = check_device(device, "copy")) return status;
    if (direction < YOKE_COPY_HOST_TO_DEVICE || direction > YOKE_COPY_PEER)
        return fail(YOKE_E_VALUE, "cpu: copy does not support direction %d; use 1 to 4", direction);
    if (bytes == 0) return YOKE_OK;
    Range range{static_cast<char *>(dst), static_cast<const char *>(src), bytes, 0};
    run_chunks(static_cast<int64_t>((bytes - 1) / kCopyChunk + 1), run_range, &range, INT32_MAX);
    return YOKE_OK;
}

yoke_status fill(void *device, void *dst, uint8_t value, uint64_t bytes, void *)
{
    if (yoke_status status = check_device(device, "fill")) return status;
    if (bytes == 0) return YOKE_OK;
    Range range{static_cast<char *>(dst), nullptr, bytes, value};
    run_chunks(static_cast<int64_t>((bytes - 1) / kCopyChunk + 1), run_range, &range, INT32_MAX);
    return YOKE_OK;
}

}  // namespace yoke::cpu
