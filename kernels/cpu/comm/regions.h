// Memory of mem_alloc. Peers of one node access this memory without a copy.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/comm/shared.h"

namespace yoke::cpu::comm {

struct Comm;

// Memory of this rank, and the local peers' memory as mapped here.
struct Region {
    uint32_t number;
    uint64_t bytes;
    Mapping mine;
    Inherited inherited;          // if shared
    std::vector<Mapping> theirs;  // by rank; empty if no rank shares
};

// Regions of a communicator. All ranks make regions together, in a common order. Tensors may be freed in any thread,
// in the middle of a call, so the list has a lock.
class Regions {
public:
    yoke_status make(Comm &comm, uint64_t bytes, void **pointer);
    yoke_status drop(void *pointer, uint64_t bytes);
    // Returns the region around a tensor, or null.
    const Region *find(const void *data, uint64_t bytes) const;

private:
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Region>> all_;
    uint32_t next_ = 0;  // number of the next region
};

}  // namespace yoke::cpu::comm
