// offloaded.h: what a storage of a device held, offloaded to pinned host memory.
//
// Copies go both ways on one stream of each device that serves nothing else, behind the work that the caller's stream
// was given so far; nobody waits for them but the stream that reads what has come back.
#pragma once

#include "core/tensor/tensor.h"

#include <mutex>

namespace yoke {

struct PinnedBlock;

class Offloaded final : public RefCounted {
public:
    // Begins to copy what the storage will hold behind the work given to the current stream so far; the caller may let
    // go of the storage. Null where nothing is moved: on the host, in a capture, where there is no pinned memory.
    // Raises OOM.
    static Ref<Offloaded> make(Storage &storage);

    // On its way back: in memory of the current stream, which is to wait for it before it is read.
    struct Return {
        Ref<Storage> storage;
        Ref<Fence> done;
    };
    Return bring_back();
    static void wait_for(Return &back);

    uint64_t bytes() const noexcept { return bytes_; }

private:
    Offloaded(Device &device, PinnedBlock *block, uint64_t bytes)
        : device_(device), block_(block), bytes_(bytes)
    {
    }
    ~Offloaded() override;

    Device &device_;
    PinnedBlock *const block_;
    const uint64_t bytes_;
    std::mutex mutex_;  // several walks may bring it back
};

}  // namespace yoke
