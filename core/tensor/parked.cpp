#include "core/tensor/parked.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/immortal.h"
#include "core/device/late.h"
#include "core/memory/pinned.h"

#include <mutex>
#include <unordered_map>

namespace yoke {

namespace {

// The stream of each device that carries such copies, made at first use and never given back.
struct Carriers {
    std::mutex mutex;
    std::unordered_map<const Device *, Ref<Stream>> streams;
};
Carriers &carriers = immortal<Carriers>();

const Lane &carrier_of(Device &device)
{
    const std::lock_guard lock(carriers.mutex);
    Ref<Stream> &stream = carriers.streams[&device];
    if (!stream.present()) stream = make_stream(device, 0);
    return stream->lane;
}

// On the carrier, behind the current stream's work.
Ref<Fence> carry(Storage &storage, void *to, const void *from, int32_t direction)
{
    Device &device = *storage.device;
    check_usable(device);
    const Lane &carrier = carrier_of(device);
    if (const Ref<Fence> ready = fence_behind(device, memory_lane(device)); ready.present())
        wait_fence(device, carrier.id, *ready);
    storage.note_use(carrier.id);
    check_backend(
        device.backend->copy(device.handle, to, from, storage.bytes, direction, carrier.native),
        "checkpoint", device.name.c_str());
    return fence_behind(device, carrier.id);
}

}  // namespace

Ref<Parked> Parked::make(Storage &storage)
{
    Device &device = *storage.device;
    if (device.host || !device.backend->host_alloc || !device.backend->stream_create ||
        !storage.bytes || thread_state().graph)
        return nullptr;
    PinnedBlock *block = allocate_pinned(device, storage.bytes);
    const Ref<Parked> parked = Ref<Parked>::adopt(new Parked(device, block, storage.bytes));
    if (Ref<Fence> done = carry(storage, block->data, storage.data, YOKE_COPY_DEVICE_TO_HOST);
        done.present())
        use_pinned(*block, std::move(done));
    return parked;
}

Parked::~Parked()
{
    free_pinned(block_);
}

Parked::Return Parked::bring_back()
{
    check_not_capturing("backward of what a checkpoint scope has in host memory");
    const std::lock_guard lock(mutex_);
    Return back{Storage::allocate(device_, bytes_), {}};
    back.done = carry(*back.storage, back.storage->data, block_->data, YOKE_COPY_HOST_TO_DEVICE);
    if (back.done.present()) use_pinned(*block_, back.done);
    return back;
}

void Parked::wait_for(Return &back)
{
    if (!back.done.present()) return;
    Device &device = *back.storage->device;
    wait_fence(device, memory_lane(device), *back.done);
    back.storage->note_use(memory_lane(device));
    back.done = {};
}

}  // namespace yoke
