// Memory of mem_alloc, which the peers of one node reach without a copy.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/comm/shared.h"

namespace yoke::cpu::comm {

struct Comm;

// Memory of this rank, and the same of its local peers as it is mapped here.
struct Region {
    uint32_t number;
    uint64_t bytes;
    Mapping mine;
    Inherited inherited;          // where it is shared
    std::vector<Mapping> theirs;  // by rank; empty where nobody shares
};

// The regions of one communicator. All ranks make them together, in one order; tensors go in any thread, amid a call,
// so the list has a lock of its own.
class Regions {
public:
    yoke_status make(Comm &comm, uint64_t bytes, void **pointer);
    yoke_status drop(void *pointer, uint64_t bytes);
    // Returns the region in which a tensor lies, or null.
    const Region *find(const void *data, uint64_t bytes) const;

private:
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Region>> all_;
    uint32_t next_ = 0;  // number of the region that is made next
};

}  // namespace yoke::cpu::comm
