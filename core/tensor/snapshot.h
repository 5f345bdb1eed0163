// snapshot.h: values of tensors at a moment, copied while work goes on.
//
// Taking a snapshot copies nothing, but wants copies of the memory. A thread about to change memory with a wanted
// copy first cares for this copy: on the host, the thread helps with the copy and goes on; on a device, the thread's
// stream waits for the copy. Therefore every call of the core that writes into an existing storage calls
// before_write.
#pragma once

#include "core/tensor/tensor.h"

#include <atomic>
#include <memory>
#include <vector>

namespace yoke {

class CopyRoom;  // snapshot.cpp

class Snapshot final : public RefCounted {
public:
    // Takes a snapshot of row-major tensors, which may share memory, behind the work given so far to the current
    // streams. A host tensor without another owner is not copied. Raises YOKE_E_OOM without memory for the copies,
    // and YOKE_E_STATE while the thread captures a graph.
    static Ref<Snapshot> take(std::vector<Tensor> tensors, const char *call);

    // Makes the copies not yet made by other threads, and waits for the rest; called once. Afterwards, writers need
    // not care for the snapshot. Raises a device's failure.
    void copy();
    // Returns the number of tensors. After copy(), data() and bytes() return the copy of each tensor, in the order of
    // take().
    size_t size() const;
    const void *data(size_t tensor) const;
    uint64_t bytes(size_t tensor) const;

    // Ends the wish for copies, in place of copy(). Writers then no longer wait for the snapshot.
    void forget() noexcept;

    // Makes the wanted copies of a storage's memory before the storage is changed. On a device, the current stream
    // waits for the copies.
    void see_to(Storage &storage);

private:
    struct Piece;
    struct Part;

    Snapshot();
    ~Snapshot() override;
    void add(yoke_tensor &tensor);
    void make_room();
    void cut(Part &part, char *room);
    void start_device_copy(Part &part, const char *call);
    void want();
    void copy_piece(Piece &piece) noexcept;
    void copy_part(Part &part) noexcept;
    void wait_for_part(const Part &part) noexcept;

    std::vector<Part> parts_;
    std::unique_ptr<Piece[]> pieces_;
    size_t piece_count_ = 0;
    std::unique_ptr<CopyRoom> room_;
};

namespace detail {
extern std::atomic<int> wanted_snapshots;  // snapshots with missing copies
__attribute__((cold, noinline)) void see_to_snapshots(Storage &storage);
// Releases the host memory kept for the next snapshot. Serves an entry of core/base/lent.h.
void empty_snapshot_cache() noexcept;
}  // namespace detail

// Returns the storages of which snapshots want copies.
std::vector<Ref<Storage>> wanted_storages();

inline bool has_snapshots() noexcept
{
    return detail::wanted_snapshots.load(std::memory_order_relaxed) != 0;
}

inline void before_write(Storage &storage)
{
    if (has_snapshots()) [[unlikely]]
        detail::see_to_snapshots(storage);
}

}  // namespace yoke
