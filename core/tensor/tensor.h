// tensor.h: a tensor: a strided view of a storage, with its place in the autograd graph.
//
// Shape, strides, dtype and device never change after a tensor is made, except for a leaf that moves (take_data). An
// op that "changes" a tensor in place changes the tensor's storage and increments the storage's version. Autograd
// compares versions to find changes of saved values. Metadata may be read from any thread. Element data follows the
// order of the device's streams.
#pragma once

#include "core/base/dtype.h"
#include "core/base/pool.h"
#include "core/base/refcount.h"
#include "core/base/shape.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/memory/graph_pool.h"

#include <atomic>

namespace yoke {

// Source of a storage's values, for recomputing the values (core/ops/recompute/recording.h). The origin outlives the
// memory, and still knows the memory's version.
class Origin : public RefCounted {
public:
    std::atomic<uint32_t> version{0};
    std::atomic<const char *> last_writer{nullptr};
    std::atomic<bool> exposed{false};  // the host program has the address, and may write unnoticed
    std::atomic<bool> gone{false};     // the memory has been released
};

// Block of device memory, Yoke's own or borrowed from the host program.
class Storage final : public RefCounted {
public:
    // Exactly a cache line in all: a script drops storages by the thousand.
    std::atomic<uint32_t> version{0};  // steps with every change in place
    Device *const device;
    void *const data;      // nullptr if bytes is 0
    const uint64_t bytes;  // as asked for
    std::atomic<uint32_t> rewrites{
        0};  // steps with every change in place that the tape has recorded

    // Returns the op that last changed the storage, for messages; nullptr: the host program.
    const char *last_writer() const noexcept
    {
        const Origin *known = origin();
        return known ? known->last_writer.load(std::memory_order_relaxed)
                     : reinterpret_cast<const char *>(writer_.load(std::memory_order_relaxed) %
                                                      kLane);
    }
    // Returns whether the last write was work of the lane; false if the lane is unknown.
    bool is_written_by(uint8_t lane) const noexcept
    {
        const uintptr_t writer = writer_.load(std::memory_order_relaxed);
        return !(writer & kIsOrigin) && writer / kLane == lane;
    }
    // Notes the writer, whose work is on the calling thread's lane.
    void note_writer(const char *writer) noexcept
    {
        if (Origin *known = origin()) [[unlikely]]
            known->last_writer.store(writer, std::memory_order_relaxed);
        else
            writer_.store(reinterpret_cast<uintptr_t>(writer) + memory_lane(*device) * kLane,
                          std::memory_order_relaxed);
    }
    // Notes that the lane gets work that writes the memory. The version steps when the lane has the work.
    void note_writing(uint8_t lane) noexcept
    {
        uintptr_t writer = writer_.load(std::memory_order_relaxed);
        while (!(writer & kIsOrigin) &&
               !writer_.compare_exchange_weak(writer, writer % kLane + lane * kLane,
                                              std::memory_order_relaxed)) {
        }
    }
    // Notes a change in place by `writer`, and increments the version.
    void note_written(const char *writer) noexcept
    {
        note_writer(writer);
        const uint32_t now = version.fetch_add(1, std::memory_order_relaxed) + 1;
        if (Origin *known = origin()) [[unlikely]]
            known->version.store(now, std::memory_order_relaxed);
    }
    Origin *origin() const noexcept
    {
        const uintptr_t writer = writer_.load(std::memory_order_relaxed);
        return writer & kIsOrigin ? reinterpret_cast<Origin *>(writer - kIsOrigin) : nullptr;
    }
    // Sets the origin, directly after construction, before any other thread knows the storage.
    void set_origin(Ref<Origin> origin) noexcept
    {
        writer_.store(reinterpret_cast<uintptr_t>(origin.detach()) + kIsOrigin,
                      std::memory_order_relaxed);
    }

    // Notes that the host program has the address, and may write unnoticed.
    void note_exposed() noexcept
    {
        if (Origin *known = origin()) known->exposed.store(true, std::memory_order_relaxed);
    }

    // Notes that work of the lane `by` reads or writes the memory: before the memory serves again, this work must
    // end.
    void note_use(uint8_t by) noexcept
    {
        const uint16_t bit = lane_bit(by);
        if (by != lane_ && !(uses_.load(std::memory_order_relaxed) & bit)) [[unlikely]]
            uses_.fetch_or(bit, std::memory_order_relaxed);
    }
    // Notes that work up to the fence reads or writes the memory: before the memory serves again, this work must end.
    void note_use(Ref<Fence> fence);
    // Returns the user pointer for `drop`, or nullptr if the memory was not borrowed with `drop`.
    void *lent_with(yoke_drop_fn drop) const noexcept
    {
        return is_borrowed_ && lender_->drop == drop ? lender_->user : nullptr;
    }

    static Ref<Storage> allocate(Device &device, uint64_t bytes);
    // Makes a storage over memory of the host program. drop(user) runs once, after the last tensor is gone and the
    // work on the memory has ended.
    static Ref<Storage> borrow(Device &device, void *data, uint64_t bytes, yoke_drop_fn drop,
                               void *user);

    // Returns the bytes taken of the device's memory: the capacity of the block, or `bytes` for memory that is
    // borrowed or belongs to a graph.
    uint64_t capacity() const noexcept
    {
        return is_borrowed_ || !block_ || is_graph_owned() ? bytes : block_->capacity;
    }
    // Returns whether the memory belongs to a graph: the storage was made while the graph was captured.
    bool is_graph_owned() const noexcept
    {
        return !is_borrowed_ && block_ && block_->arena && block_->arena->pool.present();
    }

    // Returns the block of Yoke's own memory; null for borrowed memory, and if bytes is 0.
    Block *block() const noexcept { return is_borrowed_ ? nullptr : block_; }

private:
    struct Lender {
        yoke_drop_fn drop;
        void *user;
        Guards *guards = nullptr;
    };
    Storage(Device &d, Block *block, uint64_t n, uint8_t lane) noexcept
        : device(&d),
          data(block ? block->data() : nullptr),
          bytes(n),
          is_borrowed_(false),
          lane_(lane),
          writer_(lane * kLane),
          block_(block)
    {
    }
    Storage(Device &d, void *p, uint64_t n, uint8_t lane, Lender *lender) noexcept
        : device(&d),
          data(p),
          bytes(n),
          is_borrowed_(true),
          lane_(lane),
          writer_(lane * kLane),
          lender_(lender)
    {
    }
    void destroy() noexcept override;

    // Bits that no address of a program has; the lowest will not do, since names lie anywhere.
    static constexpr uintptr_t kIsOrigin = uintptr_t{1} << 63, kLane = uintptr_t{1} << 48;
    const bool is_borrowed_;
    const uint8_t lane_;  // lane of the allocation, or of the borrowing
    // Other lanes, as a set of lane_bit(); the own lane's bit: the block has guards.
    std::atomic<uint16_t> uses_{0};
    std::atomic<uintptr_t> writer_;  // name of the last writer, and its lane; or an Origin
    union {
        Block *block_;    // our own, or null
        Lender *lender_;  // owner of borrowed memory
    };
};
static_assert(sizeof(Storage) == 64);

}  // namespace yoke

struct yoke_tensor final : yoke::RefCounted {
    yoke::Ref<yoke::Storage>
        storage;  // null: shape and dtype only, as the tape keeps of what no vjp reads
    yoke::Device *device = nullptr;
    char *data = nullptr;  // the first element
    int64_t numel = 0;
    yoke_dtype dtype = YOKE_NONE;
    int16_t ndim = 0;
    bool contiguous = true;  // row-major without gaps
    bool is_view = false;    // made by a view op: other tensors see the same memory
    bool frozen = false;     // a leaf without need for a gradient now; it keeps its gradient

    // Autograd: the tape node of this tensor, or the leaf node with its gradient; null: no gradient.
    yoke::Ref<yoke::RefCounted> node;
    uint32_t output_index = 0;   // index among the node's results
    uint32_t node_rewrites = 0;  // the storage's rewrites when the node was set or the view taken
    // Tensor whose memory a view shows, and never a view itself: a recorded write into the view changes the history of
    // this tensor. Null for tensors that are no views, and for views taken under no_grad.
    yoke::Ref<yoke_tensor> base;

    int64_t *strides_ = nullptr;
    int64_t shape_[2 * YOKE_MAX_NDIM];  // strides follow the shape, so both share a cache line

    yoke::IntList shape() const noexcept { return {shape_, static_cast<size_t>(ndim)}; }
    yoke::IntList strides() const noexcept { return {strides_, static_cast<size_t>(ndim)}; }
    bool requires_grad() const noexcept { return node.present() && !frozen; }
    uint64_t nbytes() const noexcept
    {
        return static_cast<uint64_t>(numel) * yoke::item_size(dtype);
    }

    static void *operator new(size_t bytes) { return yoke::pool_alloc(bytes); }
    static void operator delete(void *block, size_t bytes) noexcept
    {
        yoke::pool_free(block, bytes);
    }

    explicit yoke_tensor(size_t axes) noexcept;
    ~yoke_tensor() override;
};

namespace yoke {

using Tensor = Ref<yoke_tensor>;
using TensorList = std::span<yoke_tensor *const>;

// Makes a row-major tensor with memory of its own. make_strided() uses the given dense strides instead; null:
// row-major. Values are not set. Raises YOKE_E_VALUE for an impossible shape, and YOKE_E_OOM.
Tensor make_tensor(Device &device, yoke_dtype dtype, IntList shape, const char *call);
Tensor make_strided(Device &device, yoke_dtype dtype, IntList shape, const int64_t *strides,
                    const char *call);

// Computes the strides of a copy of x in the order of x's axes: NHWC stays NHWC. Returns false if x is row-major
// anyway, or does not lie dense in memory from its first element on.
bool dense_strides(const yoke_tensor &x, int64_t *strides);

// Makes a tensor of x's shape, in the order of x's axes if x is dense. Values are not set.
Tensor make_like(const yoke_tensor &x, yoke_dtype dtype, const char *call);

// Makes a tensor without memory, only with shape, strides (null: row-major) and dtype. allocate_memory() adds the
// memory.
Tensor make_layout(Device &device, yoke_dtype dtype, IntList shape, const int64_t *strides,
                   const char *call);
// Makes a tensor without memory, of x's shape, in the order of x's axes if x is dense.
Tensor make_layout_like(const yoke_tensor &x, yoke_dtype dtype, const char *call);
void allocate_memory(yoke_tensor &x);

// Makes another view of x's memory: `offset` elements from x's first element. The caller has checked the bounds. No
// autograd.
Tensor make_view(const yoke_tensor &x, IntList shape, const int64_t *strides, int64_t offset);

// Returns a view of the whole storage behind x, of any dtype, whose first element is at `offset` bytes. Raises
// YOKE_E_VALUE unless the view lies within the storage and is aligned for the dtype. No autograd.
Tensor view_storage(const yoke_tensor &x, yoke_dtype dtype, IntList shape, const int64_t *strides,
                    int64_t offset, const char *call);

// Returns another view of x with the same shape and strides, without autograd.
Tensor alias(const yoke_tensor &x);

// Makes x, which has data's shape, a further view of data's memory, with data's dtype, device and strides. Other
// views of x's former memory keep the former memory.
void take_data(yoke_tensor &x, const yoke_tensor &data);

// Makes a tensor over memory of the host program. Strides count elements and may be negative; nullptr: row-major.
// drop(user) runs once, when the last tensor is gone; if the call raises, drop does not run. Raises YOKE_E_VALUE for
// null or unaligned data, or strides beyond memory.
Tensor from_memory(void *data, IntList shape, const int64_t *strides, yoke_dtype dtype,
                   Device &device, yoke_drop_fn drop, void *user, const char *call);

// Copies a row-major tensor to host memory on the current stream, and waits for the end. copy_from_host() copies the
// other way. Raises YOKE_E_VALUE, naming both sizes, unless `bytes` is the tensor's size.
void copy_to_host(const yoke_tensor &contiguous_tensor, void *to, uint64_t bytes, const char *call);
void copy_from_host(yoke_tensor &contiguous_tensor, const void *from, uint64_t bytes,
                    const char *call);

// Copies elements to a tensor of another device; both are row-major and of the same shape and dtype. Two devices of
// the same backend order their streams by events, and the caller goes on. Between host and device, the call waits for
// the stream. With `non_blocking`, the caller goes on too: host memory to be read is pinned, or first copied to
// pinned memory. Host memory to be written must be pinned, else the call waits.
void transfer(yoke_tensor &to, const yoke_tensor &from, bool non_blocking);

// Makes a row-major tensor of the host in memory that is pinned for `device`. Values are not set.
Tensor make_pinned(Device &device, yoke_dtype dtype, IntList shape, const char *call);
// Returns the pinned block in which x lies, or nullptr.
struct PinnedBlock;
PinnedBlock *pinned_block_of(const yoke_tensor &x) noexcept;

// Bytes that a view touches: [begin, begin + bytes). 0 bytes for an empty tensor.
struct ByteRange {
    const char *begin;
    uint64_t bytes;
};
ByteRange strided_byte_range(const yoke_tensor &x) noexcept;
inline ByteRange byte_range(const yoke_tensor &x) noexcept
{
    return x.contiguous ? ByteRange{x.data, x.nbytes()} : strided_byte_range(x);
}

bool shares_memory(const yoke_tensor &a, const yoke_tensor &b) noexcept;  // as footprint.h has it

// Returns the first axis whose elements all lie in the same place of memory, which cannot be written element by
// element; -1 if there is none.
inline int expanded_axis(const yoke_tensor &x) noexcept
{
    for (int d = 0; d < x.ndim && x.numel; ++d)
        if (x.strides_[d] == 0 && x.shape_[d] > 1) return d;
    return -1;
}

// Computes strides for a view of x with `shape`. Returns false if x's strides do not allow the view without a copy.
bool view_strides(const yoke_tensor &x, IntList shape, int64_t *strides) noexcept;

// Returns the number of living tensors of the process, plus tensors whose memory the tape keeps: for leak checks.
int64_t live_tensor_count() noexcept;
// Adds `change` to the number of tensors whose memory the tape keeps; a negative number subtracts.
void count_kept_tensors(int64_t change) noexcept;

// Returns shape, dtype and device for messages: "[2, 3] float32 on cpu".
std::string describe(const yoke_tensor &x);

}  // namespace yoke
