#include "core/tensor/snapshot.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/device/deferred_error.h"
#include "core/memory/memory.h"
#include "core/memory/pinned.h"
#include "core/tensor/carrier.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace yoke {

constinit std::atomic<int> detail::wanted_snapshots{0};

namespace {

// Bytes that a thread copies at a time: enough to make the cost of a claim small, and few enough for two threads to
// share the work.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kAlignment = 64;

uint64_t padded(uint64_t bytes)
{
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Snapshots wanting copies of a storage. Few live at once: a save waits for the save before.
struct Wanted {
    Mutex mutex{LockRank::kOther};
    std::unordered_multimap<const Storage *, Ref<Snapshot>> by_storage;
};
Wanted &wanted = immortal<Wanted>();

// Forgets wanted copies in a forked child: the child has the old memory, but no thread to copy it.
void forget_in_child()
{
    detail::wanted_snapshots.store(0, std::memory_order_relaxed);
    new (&wanted.by_storage) decltype(wanted.by_storage);
}

// Memory of the last snapshot, whose pages are already present.
struct Spare {
    Mutex mutex{LockRank::kOther};
    void *data = nullptr;
    uint64_t capacity = 0;

    void swap(void *&other, uint64_t &bytes)
    {
        const std::lock_guard lock(mutex);
        std::swap(data, other);
        std::swap(capacity, bytes);
    }
};
Spare &spare = immortal<Spare>();

}  // namespace

// Host memory for all copies of a snapshot. After its release, the memory waits for the next snapshot.
class CopyRoom {
public:
    explicit CopyRoom(uint64_t bytes)
    {
        spare.swap(data_, capacity_);
        if (capacity_ >= bytes && capacity_ / 2 <= bytes) return;
        if (data_) munmap(data_, capacity_);
        capacity_ = bytes;
        if (map()) return;
        empty_cache(devices_of(kHostKind).front());
        if (map()) return;
        fail(YOKE_E_OOM, "not enough host memory for a copy of the %llu bytes to save",
             static_cast<unsigned long long>(bytes));
    }
    ~CopyRoom()
    {
        spare.swap(data_, capacity_);
        if (data_) munmap(data_, capacity_);
    }
    CopyRoom(const CopyRoom &) = delete;
    CopyRoom &operator=(const CopyRoom &) = delete;

    char *data() const { return static_cast<char *>(data_); }

private:
    // Maps memory for the copies. Returns false if the system has no memory, or would end the process at first touch.
    bool map()
    {
        data_ = nullptr;
        if (would_be_ended(*devices_of(kHostKind).front(), capacity_)) return false;
        void *data =
            mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) return false;
        data_ = data;
        // First touch is then a fault for 2 MiB, not for 4 KiB.
        madvise(data_, capacity_, MADV_HUGEPAGE);
        return true;
    }

    void *data_ = nullptr;
    uint64_t capacity_ = 0;
};

void detail::empty_snapshot_cache() noexcept
{
    void *data = nullptr;
    uint64_t capacity = 0;
    spare.swap(data, capacity);
    if (data) munmap(data, capacity);
}

// ---- Taking a snapshot -----------------------------------------------------------------------------------------

// Piece of a host tensor's memory, copied by the first thread to claim the piece.
struct Snapshot::Piece {
    enum State : uint8_t { kWaiting, kCopying, kDone };
    std::atomic<uint8_t> state{kWaiting};
    const char *from = nullptr;
    char *to = nullptr;
    uint64_t bytes = 0;
};

// Tensor of a save. On the host, the part has pieces; on a device, a fence behind its copy.
struct Snapshot::Part {
    Ref<Storage> storage;
    char *data = nullptr;
    uint64_t bytes = 0;
    bool is_on_host = false;
    char *copy = nullptr;  // `data`, if the tensor has no other owner
    size_t first_piece = 0, end_piece = 0;
    PinnedBlock *pinned = nullptr;
    Ref<Fence> fence;

    bool is_wanted() const { return copy != data; }
};

Snapshot::Snapshot() = default;

Snapshot::~Snapshot()
{
    for (const Part &part : parts_)
        if (part.pinned) free_pinned(part.pinned);
}

size_t Snapshot::size() const
{
    return parts_.size();
}

const void *Snapshot::data(size_t tensor) const
{
    return parts_[tensor].copy;
}

uint64_t Snapshot::bytes(size_t tensor) const
{
    return parts_[tensor].bytes;
}

void Snapshot::add(yoke_tensor &tensor)
{
    Part &part = parts_.emplace_back();
    part.storage = tensor.storage;
    part.data = static_cast<char *>(tensor.data);
    part.bytes = tensor.nbytes();
    part.is_on_host = tensor.device->host;
    const bool is_ours = tensor.use_count() == 1 && tensor.storage->use_count() == 2;
    if (part.bytes == 0 || (is_ours && tensor.device->host)) part.copy = part.data;
}

void Snapshot::make_room()
{
    uint64_t bytes = 0;
    size_t pieces = 0;
    for (const Part &part : parts_)
        if (part.is_wanted() && part.is_on_host) {
            bytes += padded(part.bytes);
            pieces += (part.bytes + kPieceBytes - 1) / kPieceBytes;
        }
    if (bytes == 0) return;
    room_ = std::make_unique<CopyRoom>(bytes);
    pieces_ = std::make_unique<Piece[]>(pieces);
    char *place = room_->data();
    for (Part &part : parts_)
        if (part.is_wanted() && part.is_on_host) {
            cut(part, place);
            place += padded(part.bytes);
        }
}

void Snapshot::cut(Part &part, char *room)
{
    part.copy = room;
    part.first_piece = piece_count_;
    for (uint64_t done = 0; done < part.bytes; done += kPieceBytes) {
        Piece &piece = pieces_[piece_count_++];
        piece.from = part.data + done;
        piece.to = room + done;
        piece.bytes = std::min(kPieceBytes, part.bytes - done);
    }
    part.end_piece = piece_count_;
}

void Snapshot::start_device_copy(Part &part, const char *call)
{
    part.pinned = allocate_pinned(*part.storage->device, part.bytes);
    part.copy = static_cast<char *>(part.pinned->data);
    part.fence =
        carry(*part.storage, part.copy, part.data, part.bytes, YOKE_COPY_DEVICE_TO_HOST, call);
    if (part.fence.present()) use_pinned(*part.pinned, part.fence);
}

Ref<Snapshot> Snapshot::take(std::vector<Tensor> tensors, const char *call)
{
    static Once hook;
    hook.run("snapshots", [] { on_fork_child(forget_in_child); });
    check_not_capturing(call);
    Ref<Snapshot> made = Ref<Snapshot>::adopt(new Snapshot);
    made->parts_.reserve(tensors.size());
    for (const Tensor &each : tensors) made->add(*each);
    made->make_room();
    for (Part &part : made->parts_)
        if (part.is_wanted() && !part.is_on_host) made->start_device_copy(part, call);
    made->want();
    return made;
}

void Snapshot::want()
{
    decltype(wanted.by_storage) wants;
    for (const Part &part : parts_)
        if (part.is_wanted()) wants.emplace(part.storage.get(), Ref<Snapshot>::share(this));
    const std::lock_guard lock(wanted.mutex);
    wanted.by_storage.reserve(wanted.by_storage.size() +
                              wants.size());  // all or none: merge allocates nothing
    wanted.by_storage.merge(wants);
    detail::wanted_snapshots.fetch_add(1, std::memory_order_relaxed);
}

// ---- Copies ---------------------------------------------------------------------------------------------------

void Snapshot::copy_piece(Piece &piece) noexcept
{
    uint8_t waiting = Piece::kWaiting;
    if (!piece.state.compare_exchange_strong(waiting, Piece::kCopying, std::memory_order_acquire))
        return;
    memcpy(piece.to, piece.from, piece.bytes);
    piece.state.store(Piece::kDone, std::memory_order_release);
    piece.state.notify_all();
}

void Snapshot::copy_part(Part &part) noexcept
{
    for (size_t i = part.first_piece; i < part.end_piece; ++i) copy_piece(pieces_[i]);
}

// Waits for pieces claimed by other threads.
void Snapshot::wait_for_part(const Part &part) noexcept
{
    for (size_t i = part.first_piece; i < part.end_piece; ++i)
        while (pieces_[i].state.load(std::memory_order_acquire) != Piece::kDone)
            pieces_[i].state.wait(Piece::kCopying, std::memory_order_acquire);
}

void Snapshot::see_to(Storage &storage)
{
    for (Part &part : parts_) {
        if (part.storage.get() != &storage) continue;
        copy_part(part);
        wait_for_part(part);
        if (part.fence.present())
            wait_fence(*storage.device, memory_lane(*storage.device), *part.fence);
    }
}

void Snapshot::copy()
{
    struct AtEnd {
        ~AtEnd() { snapshot.forget(); }
        Snapshot &snapshot;
    } const at_end{*this};
    for (Part &part : parts_) copy_part(part);
    for (const Part &part : parts_) wait_for_part(part);
    for (const Part &part : parts_) {
        if (!part.fence.present()) continue;
        Device &device = *part.storage->device;
        check_backend(device.backend->event_synchronize(device.handle, part.fence->event), "save",
                      device.name.c_str());
    }
}

// Ends the wish for copies: writers no longer need to call see_to().
void Snapshot::forget() noexcept
{
    const std::lock_guard lock(wanted.mutex);
    std::erase_if(wanted.by_storage,
                  [this](const auto &each) { return each.second.get() == this; });
    detail::wanted_snapshots.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<Ref<Storage>> wanted_storages()
{
    std::vector<Ref<Storage>> found;
    const std::lock_guard lock(wanted.mutex);
    for (const auto &each : wanted.by_storage)
        found.push_back(Ref<Storage>::share(const_cast<Storage *>(each.first)));
    return found;
}

void detail::see_to_snapshots(Storage &storage)
{
    const ThreadState *thread = known_thread_state();
    if (thread && thread->graph) return;  // no work runs now; a replay calls before_write
    std::vector<Ref<Snapshot>> found;
    {
        const std::lock_guard lock(wanted.mutex);
        const auto [first, last] = wanted.by_storage.equal_range(&storage);
        for (auto each = first; each != last; ++each) found.push_back(each->second);
    }
    for (const Ref<Snapshot> &each : found) each->see_to(storage);
}

}  // namespace yoke
