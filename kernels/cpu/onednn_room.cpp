#include "kernels/cpu/onednn_room.h"

#include <sys/mman.h>

#include <cstdlib>

namespace yoke::cpu {

// oneDNN 2.6 maps a quarter of a MiB for each generated kernel, and a primitive has up to some dozens of kernels. The
// most malloc memory seen for a primitive, with packed operands, was 700 KB. This file does not touch the memory.
constexpr uint64_t kMapped = 16 << 20, kTaken = 1 << 20;
constexpr uint64_t kPacked = 2;  // copies of the operands

bool has_room_for_onednn(uint64_t operand_bytes)
{
    void *volatile taken =
        malloc(kTaken + kPacked * operand_bytes);  // volatile, else the compiler removes the call
    if (!taken) return false;
    void *mapped = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) munmap(mapped, kMapped);
    free(taken);
    return mapped != MAP_FAILED;
}

// Takes a block of each size that libgomp's block may have, and frees the blocks again. After this, the allocator has
// such a block. After a success, later calls in this thread return true at once.
bool has_room_for_openmp()
{
    static thread_local bool t_found __attribute__((tls_model("initial-exec"))) = false;
    if (t_found) return true;
    constexpr size_t kStep = 16, kMost = 768;
    void *volatile blocks[kMost / kStep] = {};
    size_t count = 0;
    for (; count < kMost / kStep; count++) {
        void *block = malloc((count + 1) * kStep);
        if (!block) break;
        blocks[count] = block;
    }
    t_found = count == kMost / kStep;
    while (count > 0) free(blocks[--count]);
    return t_found;
}

}  // namespace yoke::cpu
