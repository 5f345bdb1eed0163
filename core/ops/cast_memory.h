// cast_memory.h: the weights that the last regions of autocast have cast. The next region casts them in one launch, at
// its first use of one of them.
#pragma once

#include "core/base/fork.h"
#include "core/base/thread_state.h"
#include "core/tensor/tensor.h"

#include <cstdint>
#include <vector>

namespace yoke {

// Weight that may have ended since: another tensor may have the address, but no other leaf has the number.
struct PastWeight {
    const yoke_tensor *address;
    uint64_t leaf;  // sequence number of the weight's leaf
};

// Returns whether casts of x are worth keeping: float32 weights are cast again in every call.
bool is_weight(const yoke_tensor &x);
// Returns the number of a weight's leaf.
uint64_t leaf_number(const yoke_tensor &weight);

class CastMemory {
public:
    static CastMemory &of_process();

    // Keeps the weights that a region of the calling thread has cast, in place of earlier lists that share a weight.
    void remember(std::vector<PastWeight> weights);
    // Returns the weights that a region of the calling thread has cast together with x; none if x is in no kept list.
    std::vector<PastWeight> beside(const yoke_tensor &x);

private:
    // Lists of a few models that take turns. Only the thread that used the weights looks at them: other threads may
    // move their own.
    struct List {
        const ThreadState *thread = nullptr;
        std::vector<PastWeight> weights = {};  // by number of the leaf
        bool contains(uint64_t leaf) const;
    };
    static constexpr size_t kLists = 8;

    Mutex mutex_{LockRank::kOther};
    List lists_[kLists];
    size_t oldest_ = 0;
};

}  // namespace yoke
