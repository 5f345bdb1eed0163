// copy.cpp: bytes between the host program and a tensor's device, and between devices. Each copy is ordered on the
// current stream of the device; a copy that must be finished waits only for this stream.
#include "core/backend/registry.h"
#include "core/device/deferred_error.h"
#include "core/memory/pinned.h"
#include "core/tensor/snapshot.h"
#include "core/tensor/tensor.h"

#include <cstring>
#include <memory>

namespace yoke {

namespace {

void check_size(const yoke_tensor &x, uint64_t bytes, const char *call)
{
    if (bytes != x.nbytes())
        fail(YOKE_E_VALUE,
             "%s: argument 'bytes' is %llu; it must be the size of the tensor %s, %llu bytes", call,
             static_cast<unsigned long long>(bytes), describe(x).c_str(),
             static_cast<unsigned long long>(x.nbytes()));
}

// Starts a copy of the bytes of x, in either direction, on the current stream of x's device.
void start_copy(const yoke_tensor &x, void *to, const void *from, int32_t direction,
                const char *call)
{
    check_usable(*x.device);
    x.storage->note_use(memory_lane(*x.device));
    check_backend(x.device->backend->copy(x.device->handle, to, from, x.nbytes(), direction,
                                          current_native(*x.device)),
                  call, x.device->name.c_str());
}

void wait_for_copy(Device &device, const char *call)
{
    const Lane *lane = current_lane(device);
    check_backend(synchronize_lane(device, lane ? lane->id : 0), call, device.name.c_str());
}

void note_written(const yoke_tensor &x)
{
    x.storage->note_written(nullptr);
}

constexpr const char *kTransfer = "copy_";

// Begins to copy host memory to a device. Memory that is not pinned is first copied to pinned memory, so the caller
// may change it afterwards.
void upload(yoke_tensor &to, const yoke_tensor &from)
{
    PinnedBlock *block = pinned_block_of(from);
    std::unique_ptr<PinnedBlock, void (*)(PinnedBlock *)> staged(nullptr, free_pinned);
    if (!block) {
        staged.reset(block = allocate_pinned(*to.device, from.nbytes()));
        memcpy(block->data, from.data, from.nbytes());
    }
    const void *bytes = staged ? block->data : from.data;
    start_copy(to, to.data, bytes, YOKE_COPY_HOST_TO_DEVICE, kTransfer);
    use_pinned(*block, *to.device);
}

void download(yoke_tensor &to, const yoke_tensor &from, PinnedBlock &block)
{
    start_copy(from, to.data, from.data, YOKE_COPY_DEVICE_TO_HOST, kTransfer);
    use_pinned(block, *from.device);
}

// Copies between devices of a backend, on the stream of the written device. The copy waits for the other device's
// work so far, and the other device's later work waits for the copy.
void copy_peer(yoke_tensor &to, const yoke_tensor &from)
{
    Device &target = *to.device, &source = *from.device;
    check_usable(target);
    const uint8_t target_lane = memory_lane(target), source_lane = memory_lane(source);
    to.storage->note_use(target_lane);
    from.storage->note_use(source_lane);
    note_copied(target, source);
    if (const Ref<Fence> ready = fence_behind(source, source_lane); ready.present())
        wait_fence(target, target_lane, *ready);
    check_backend(target.backend->copy(target.handle, to.data, from.data, from.nbytes(),
                                       YOKE_COPY_PEER, current_native(target)),
                  kTransfer, target.name.c_str());
    if (const Ref<Fence> done = fence_behind(target, target_lane); done.present())
        wait_fence(source, source_lane, *done);
}

}  // namespace

void copy_to_host(const yoke_tensor &x, void *to, uint64_t bytes, const char *call)
{
    check_size(x, bytes, call);
    check_usable(*x.device);
    check_not_capturing(call);
    if (bytes == 0) return;
    raise_deferred_error(*x.device);
    start_copy(x, to, x.data, YOKE_COPY_DEVICE_TO_HOST, call);
    wait_for_copy(*x.device, call);
    raise_deferred_error(*x.device);
}

void copy_from_host(yoke_tensor &x, const void *from, uint64_t bytes, const char *call)
{
    check_size(x, bytes, call);
    check_usable(*x.device);
    check_not_capturing(call);
    if (bytes == 0) return;
    before_write(*x.storage);
    start_copy(x, x.data, from, YOKE_COPY_HOST_TO_DEVICE, call);
    wait_for_copy(*x.device, call);  // the host program may reuse its memory after the return
    note_written(x);
}

void transfer(yoke_tensor &to, const yoke_tensor &from, bool non_blocking)
{
    if (from.numel == 0) return;
    check_not_capturing(kTransfer);
    before_write(*to.storage);
    Device &target = *to.device, &source = *from.device;
    if (target.backend == source.backend) return copy_peer(to, from);
    PinnedBlock *pinned = non_blocking ? pinned_block_of(to) : nullptr;
    if (source.host && non_blocking && target.backend->host_alloc) return upload(to, from);
    if (source.host) return copy_from_host(to, from.data, from.nbytes(), kTransfer);
    if (target.host && pinned) return download(to, from, *pinned);
    if (target.host) return copy_to_host(from, to.data, from.nbytes(), kTransfer);
    const std::unique_ptr<char[]> host(new char[from.nbytes()]);
    copy_to_host(from, host.get(), from.nbytes(), kTransfer);
    copy_from_host(to, host.get(), from.nbytes(), kTransfer);
}

Tensor make_pinned(Device &device, yoke_dtype dtype, IntList shape, const char *call)
{
    const uint64_t bytes = static_cast<uint64_t>(checked_numel(shape, call)) * item_size(dtype);
    PinnedBlock *block = allocate_pinned(device, bytes ? bytes : 1);
    try {
        return from_memory(block->data, shape, nullptr, dtype, *devices_of(kHostKind).front(),
                           drop_pinned, block, call);
    } catch (...) {
        free_pinned(block);
        throw;
    }
}

PinnedBlock *pinned_block_of(const yoke_tensor &x) noexcept
{
    return x.storage.present() ? static_cast<PinnedBlock *>(x.storage->lent_with(drop_pinned))
                               : nullptr;
}

}  // namespace yoke
