#include "core/tensor/tensor.h"

#include "core/base/pool.h"
#include "core/base/tally.h"
#include "core/memory/memory.h"
#include "core/memory/pinned.h"
#include "core/tensor/footprint.h"
#include "core/tensor/live.h"

#include <algorithm>
#include <memory>
#include <new>

namespace yoke {

namespace {

Tally live_tensors;

// Makes a tensor without memory, and fills all fields that follow from shape and strides (null: row-major). Raises if
// the device has been disabled.
Tensor with_layout(Device &device, yoke_dtype dtype, IntList shape, const int64_t *strides,
                   int64_t numel)
{
    Tensor t = Tensor::adopt(new yoke_tensor(shape.size()));
    t->device = &device;
    t->dtype = dtype;
    t->numel = numel;
    // No std::copy: a call of memmove takes longer than a shape's few sizes.
    for (size_t i = shape.size(); i-- > 0;) t->shape_[i] = shape[i];
    if (strides) {
        std::copy_n(strides, shape.size(), t->strides_);
        t->contiguous = is_contiguous(shape, strides);
    } else {
        contiguous_strides(shape, t->strides_);
    }
    if (device.host) return t;
    detail::note_live(t.get());
    // Either disable() sees this tensor, or it is seen here.
    if (device.disabled.load(std::memory_order_relaxed)) detail::fail_unusable(device);
    return t;
}

void attach(yoke_tensor &t, Ref<Storage> storage)
{
    t.data = static_cast<char *>(storage->data);
    t.storage = std::move(storage);
}

// Computes the lowest and highest element offset that a view reaches; numel is not 0.
void reach(IntList shape, const int64_t *strides, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    for (size_t i = 0; i < shape.size(); ++i)
        (strides[i] < 0 ? *lowest : *highest) += strides[i] * (shape[i] - 1);
}

// Computes reach() for foreign strides. Raises YOKE_E_VALUE unless every element lies at an address possible in
// memory.
void checked_reach(const void *data, IntList shape, const int64_t *strides, int64_t size,
                   int64_t *lowest, int64_t *highest, const char *call)
{
    bool overflow = false;
    *lowest = *highest = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        int64_t step, &end = strides[i] < 0 ? *lowest : *highest;
        // A single step must fit even if an axis of size 1 never takes the step: a slice may start there.
        overflow |= __builtin_mul_overflow(strides[i], size, &step);
        overflow |= __builtin_mul_overflow(strides[i], shape[i] - 1, &step) ||
                    __builtin_add_overflow(end, step, &end);
    }
    int64_t first = 0, last = 0, address = 0;
    overflow |= __builtin_mul_overflow(*lowest, size, &first) ||
                __builtin_mul_overflow(*highest, size, &last) ||
                __builtin_add_overflow(last, size, &last) ||
                __builtin_sub_overflow(last, first, &address);
    overflow |= __builtin_add_overflow(reinterpret_cast<intptr_t>(data), first, &address) ||
                address < 0 ||
                __builtin_add_overflow(reinterpret_cast<intptr_t>(data), last, &address);
    if (overflow)
        fail(YOKE_E_VALUE, "%s: strides %s with shape %s reach beyond what memory can address",
             call, to_string({strides, shape.size()}).c_str(), to_string(shape).c_str());
}

}  // namespace

Ref<Storage> Storage::allocate(Device &device, uint64_t bytes)
{
    void *place =
        pool_alloc(sizeof(Storage));  // first: nothing may fail once there is a block to lose
    Block *block = nullptr;
    const uint8_t lane = memory_lane(device);
    try {
        block = allocate_block(device, bytes, lane);
    } catch (...) {
        pool_free(place, sizeof(Storage));
        throw;
    }
    auto *storage = new (place) Storage(device, block, bytes, lane);
    if (storage->is_graph_owned()) [[unlikely]]
        GraphPool::note_storage(*block, storage);
    return Ref<Storage>::adopt(storage);
}

Ref<Storage> Storage::borrow(Device &device, void *data, uint64_t bytes, yoke_drop_fn drop,
                             void *user)
{
    std::unique_ptr<Lender> lender(new Lender{drop, user});
    void *place = pool_alloc(sizeof(Storage));
    return Ref<Storage>::adopt(
        new (place) Storage(device, data, bytes, memory_lane(device), lender.release()));
}

void Storage::note_use(Ref<Fence> fence)
{
    if (void *pinned = lent_with(drop_pinned))
        return use_pinned(*static_cast<PinnedBlock *>(pinned), std::move(fence));
    if (is_borrowed_) return add_guard(lender_->guards, std::move(fence));
    if (!block_) return;
    add_guard(block_->guards, std::move(fence));
    uses_.fetch_or(lane_bit(lane_), std::memory_order_relaxed);
}

void Storage::destroy() noexcept
{
    if (!is_borrowed_) {
        free_block(*device, block_, uses_.load(std::memory_order_relaxed));
    } else {
        const Guards guards = take_guards(lender_->guards);
        if (lender_->drop) {
            // The owner may use the memory again at once, so Yoke's work on the memory must have ended before.
            if (!device->host) wait_for_uses(*device, lane_, uses_.load(std::memory_order_relaxed));
            wait_for(guards);
            lender_->drop(lender_->user);
        }
        delete lender_;
    }
    if (Origin *known = origin()) {
        known->gone.store(true, std::memory_order_relaxed);
        known->release();
    }
    this->~Storage();
    pool_free(this, sizeof(Storage));
}

Tensor make_tensor(Device &device, yoke_dtype dtype, IntList shape, const char *call)
{
    return make_strided(device, dtype, shape, nullptr, call);
}

Tensor make_strided(Device &device, yoke_dtype dtype, IntList shape, const int64_t *strides,
                    const char *call)
{
    Tensor t = make_layout(device, dtype, shape, strides, call);
    allocate_memory(*t);
    return t;
}

bool dense_strides(const yoke_tensor &x, int64_t *strides)
{
    if (x.contiguous) return false;
    int order[YOKE_MAX_NDIM];
    for (int i = 0; i < x.ndim; ++i) order[i] = i;
    std::stable_sort(order, order + x.ndim,
                     [&x](int a, int b) { return x.strides_[a] > x.strides_[b]; });
    int64_t step = 1;
    for (int i = x.ndim - 1; i >= 0; --i) {
        const int axis = order[i];
        if (x.shape_[axis] != 1 && x.strides_[axis] != step) return false;
        strides[axis] = step;
        step *= x.shape_[axis];
    }
    return true;
}

Tensor make_layout(Device &device, yoke_dtype dtype, IntList shape, const int64_t *strides,
                   const char *call)
{
    return with_layout(device, dtype, shape, strides, checked_numel(shape, call));
}

Tensor make_layout_like(const yoke_tensor &x, yoke_dtype dtype, const char *call)
{
    // Elements that lie in memory side by side can be counted in any dtype; an expanded view may have more.
    if (x.contiguous) return with_layout(*x.device, dtype, x.shape(), nullptr, x.numel);
    int64_t strides[YOKE_MAX_NDIM];
    return make_layout(*x.device, dtype, x.shape(), dense_strides(x, strides) ? strides : nullptr,
                       call);
}

Tensor make_like(const yoke_tensor &x, yoke_dtype dtype, const char *call)
{
    Tensor t = make_layout_like(x, dtype, call);
    allocate_memory(*t);
    return t;
}

void allocate_memory(yoke_tensor &x)
{
    attach(x, Storage::allocate(*x.device, x.nbytes()));
}

Tensor make_view(const yoke_tensor &x, IntList shape, const int64_t *strides, int64_t offset)
{
    int64_t numel = 1;
    for (const int64_t size : shape) numel *= size;
    Tensor t = with_layout(*x.device, x.dtype, shape, strides, numel);
    t->storage = x.storage;
    t->data = x.data ? x.data + offset * static_cast<int64_t>(item_size(x.dtype)) : nullptr;
    return t;
}

Tensor view_storage(const yoke_tensor &x, yoke_dtype dtype, IntList shape, const int64_t *strides,
                    int64_t offset, const char *call)
{
    check_dtype(dtype, call);
    const int64_t numel = checked_numel(shape, call);
    Tensor t = with_layout(*x.device, dtype, shape, numel ? strides : nullptr, numel);
    const auto size = static_cast<int64_t>(item_size(dtype));
    const auto bytes = static_cast<int64_t>(x.storage->bytes);
    int64_t lowest = 0, highest = -1;
    if (numel) checked_reach(x.storage->data, shape, t->strides_, size, &lowest, &highest, call);
    if (offset % size)
        fail(YOKE_E_VALUE,
             "%s: argument 'offset' is %lld; it must be a multiple of the %lld bytes of a %s", call,
             static_cast<long long>(offset), static_cast<long long>(size), name(dtype));
    if (offset < 0 || offset > bytes || lowest * size < -offset ||
        (highest + 1) * size > bytes - offset)
        fail(YOKE_E_VALUE,
             "%s: shape %s with strides %s from byte %lld on exceeds the %lld bytes of the storage",
             call, to_string(shape).c_str(), to_string(t->strides()).c_str(),
             static_cast<long long>(offset), static_cast<long long>(bytes));
    char *first = bytes ? static_cast<char *>(x.storage->data) + offset : nullptr;
    if (reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(size))
        fail(
            YOKE_E_VALUE,
            "%s: byte %lld of the storage is at %p, which is not aligned to the %lld bytes of a %s; copy the data to aligned memory",
            call, static_cast<long long>(offset), static_cast<void *>(first),
            static_cast<long long>(size), name(dtype));
    t->storage = x.storage;
    t->data = first;
    return t;
}

Tensor alias(const yoke_tensor &x)
{
    return make_view(x, x.shape(), x.strides_, 0);
}

void take_data(yoke_tensor &x, const yoke_tensor &data)
{
    // First, as it may find no memory.
    if (x.device->host && !data.device->host) detail::note_live(&x);
    if (!x.device->host && data.device->host) detail::forget_live(&x);
    std::copy_n(data.strides_, data.ndim, x.strides_);
    x.contiguous = data.contiguous;
    x.is_view = data.is_view;
    x.base = nullptr;
    x.device = data.device;
    x.dtype = data.dtype;
    x.data = data.data;
    x.storage = data.storage;
}

Tensor from_memory(void *data, IntList shape, const int64_t *strides, yoke_dtype dtype,
                   Device &device, yoke_drop_fn drop, void *user, const char *call)
{
    check_dtype(dtype, call);
    const int64_t numel = checked_numel(shape, call);
    // Strides of an empty array have no meaning, and producers leave any values in them.
    Tensor t = with_layout(device, dtype, shape, numel ? strides : nullptr, numel);
    if (numel && !data)
        fail(YOKE_E_VALUE,
             "%s: argument 'data' is NULL for a shape of %s; give the address of its first element",
             call, to_string(shape).c_str());
    if (reinterpret_cast<uintptr_t>(data) % item_size(dtype))
        fail(
            YOKE_E_VALUE,
            "%s: the data at %p is not aligned to the %zu bytes of a %s; copy the data to aligned memory",
            call, data, item_size(dtype), name(dtype));
    int64_t lowest = 0, highest = -1;
    const auto size = static_cast<int64_t>(item_size(dtype));
    if (numel) checked_reach(data, shape, t->strides_, size, &lowest, &highest, call);
    attach(*t, Storage::borrow(device, static_cast<char *>(data) + lowest * size,
                               static_cast<uint64_t>((highest - lowest + 1) * size), drop, user));
    t->data = static_cast<char *>(data);
    return t;
}

ByteRange strided_byte_range(const yoke_tensor &x) noexcept
{
    if (x.numel == 0 || !x.data)
        return {x.data, 0};  // also if the tape has kept only the tensor's shape
    int64_t lowest, highest;
    reach(x.shape(), x.strides_, &lowest, &highest);
    const auto size = static_cast<int64_t>(item_size(x.dtype));
    return {x.data + lowest * size, static_cast<uint64_t>((highest - lowest + 1) * size)};
}

bool shares_memory(const yoke_tensor &a, const yoke_tensor &b) noexcept
{
    const ByteRange x = byte_range(a), y = byte_range(b);
    const bool is_near = a.device == b.device && x.bytes && y.bytes &&
                         x.begin < y.begin + y.bytes && y.begin < x.begin + x.bytes;
    return is_near && ((a.contiguous && b.contiguous) || Footprint(a).meets(Footprint(b)));
}

bool view_strides(const yoke_tensor &x, IntList shape, int64_t *strides) noexcept
{
    if (x.contiguous) {
        contiguous_strides(shape, strides);
        return true;
    }
    // Runs of x's axes that lie in memory without gaps are cut anew, from the innermost outwards.
    int to = static_cast<int>(shape.size()) - 1;
    for (int from = x.ndim - 1; from >= 0;) {
        int64_t run = x.shape_[from], inner = x.strides_[from];
        while (from > 0 && (x.shape_[from - 1] == 1 || x.strides_[from - 1] == inner * run)) {
            --from;
            run *= x.shape_[from];
        }
        --from;
        int64_t taken = 1;
        while (to >= 0 && (taken < run || shape[static_cast<size_t>(to)] == 1)) {
            strides[to] = inner * taken;
            taken *= shape[static_cast<size_t>(to)];
            --to;
        }
        if (taken != run) return false;
    }
    for (; to >= 0; --to) strides[to] = 1;
    return true;
}

int64_t live_tensor_count() noexcept
{
    return live_tensors.sum();
}

void count_kept_tensors(int64_t change) noexcept
{
    live_tensors.add(change);
}

std::string describe(const yoke_tensor &x)
{
    return to_string(x.shape()) + " " + name(x.dtype) + " on " + x.device->name;
}

}  // namespace yoke

yoke_tensor::yoke_tensor(size_t axes) noexcept
    : ndim(static_cast<int16_t>(axes)), strides_(shape_ + axes)
{
    yoke::live_tensors.add(1);
}

yoke_tensor::~yoke_tensor()
{
    yoke::live_tensors.add(-1);
    if (device && !device->host) yoke::detail::forget_live(this);
}
