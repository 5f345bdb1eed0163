// Memory of mem_alloc, which networks like: MPI may have told them of it.
#pragma once

#include <mutex>
#include <vector>

#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

// Memory that MPI gave for one communicator. Tensors go in any thread, so the list of blocks has a lock.
class Memory {
public:
    yoke_status allocate(uint64_t bytes, void **pointer);
    yoke_status release(void *pointer);

private:
    // Address that the caller got, and the one before it that MPI gave.
    struct Block {
        void *data, *whole;
    };

    std::mutex mutex_;
    std::vector<Block> blocks_;
};

}  // namespace yoke::mpi
