// Memory of mem_alloc, good for networks: MPI may have registered the memory with the network.
#pragma once

#include <mutex>
#include <vector>

#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

// MPI's memory for a communicator. Tensors may be freed in any thread, so the list of blocks has a lock.
class Memory {
public:
    yoke_status allocate(uint64_t bytes, void **pointer);
    yoke_status release(void *pointer);

private:
    // Caller's address, and MPI's address before it.
    struct Block {
        void *data, *whole;
    };

    std::mutex mutex_;
    std::vector<Block> blocks_;
};

}  // namespace yoke::mpi
