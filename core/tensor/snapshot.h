// snapshot.h: the values that tensors have at one moment, copied while work goes on.
//
// Taking one copies nothing: it wants copies of the memory. Whoever is about to change memory of which a copy is still
// wanted sees to that first: on the host it helps to make it and goes on, on a device its stream waits for it. So every
// call of the core that writes into a storage that was there before says before_write.
#pragma once

#include "core/tensor/tensor.h"

#include <atomic>
#include <memory>
#include <vector>

namespace yoke {

class CopyRoom;  // snapshot.cpp

class Snapshot final : public RefCounted {
public:
    // Of row-major tensors, which may share memory, as they are behind the work that the current streams were given so
    // far. One that nobody else has is not copied. Raises YOKE_E_OOM where there is no room for the copies, and
    // YOKE_E_STATE while the thread captures a graph.
    static Ref<Snapshot> take(std::vector<Tensor> tensors, const char *call);

    // To be called once: makes what copies nobody has made yet, and waits for the others. From then on nobody else need
    // see to it. Raises what a device failed with.
    void copy();
    // Of the tensors in their order, once all is copied.
    size_t size() const;
    const void *data(size_t tensor) const;
    uint64_t bytes(size_t tensor) const;

    // In place of copy, where nothing will be copied.
    void forget() noexcept;

    // Before the storage is changed.
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
extern std::atomic<int> wanted_snapshots;  // whose copies are not all made
__attribute__((cold, noinline)) void see_to_snapshots(Storage &storage);
// Serves core/base/lent.h.
void empty_snapshot_cache() noexcept;
}  // namespace detail

// Whose memory snapshots want.
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
