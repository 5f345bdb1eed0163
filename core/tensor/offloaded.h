// offloaded.h: contents of a device's storage, offloaded to pinned host memory.
//
// Copies in both directions run on a stream of the device used only for copies, behind the work given so far to the
// caller's stream. Only the stream that reads the restored data waits for the copies.
#pragma once

#include "core/tensor/tensor.h"

#include <mutex>

namespace yoke {

struct PinnedBlock;

class Offloaded final : public RefCounted {
public:
    // Begins to copy the storage's contents behind the work given so far to the current stream; the caller may
    // release the storage. Returns null if nothing is moved: for an empty storage, in a capture, or on a device
    // without pinned memory or streams. Raises YOKE_E_OOM.
    static Ref<Offloaded> make(Storage &storage);

    // Data on the way back, in memory of the current stream. This stream must wait for `done` before reading.
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
