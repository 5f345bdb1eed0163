#include "core/tensor/offloaded.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/device/deferred_error.h"
#include "core/memory/pinned.h"
#include "core/tensor/carrier.h"

namespace yoke {

static constexpr const char *kCall = "checkpoint";

Ref<Offloaded> Offloaded::make(Storage &storage)
{
    Device &device = *storage.device;
    if (device.host || !device.backend->host_alloc || !device.backend->stream_create ||
        !storage.bytes || thread_state().graph)
        return nullptr;
    PinnedBlock *block = allocate_pinned(device, storage.bytes);
    const Ref<Offloaded> offloaded =
        Ref<Offloaded>::adopt(new Offloaded(device, block, storage.bytes));
    if (Ref<Fence> done = carry(storage, block->data, storage.data, storage.bytes,
                                YOKE_COPY_DEVICE_TO_HOST, kCall);
        done.present())
        use_pinned(*block, std::move(done));
    return offloaded;
}

Offloaded::~Offloaded()
{
    free_pinned(block_);
}

Offloaded::Return Offloaded::bring_back()
{
    check_not_capturing("backward of tensors that a checkpoint scope has in host memory");
    Return back{Storage::allocate(device_, bytes_), {}};
    const std::lock_guard lock(mutex_);
    back.done = carry(*back.storage, back.storage->data, block_->data, bytes_,
                      YOKE_COPY_HOST_TO_DEVICE, kCall);
    if (back.done.present()) use_pinned(*block_, back.done);
    return back;
}

void Offloaded::wait_for(Return &back)
{
    if (!back.done.present()) return;
    Device &device = *back.storage->device;
    wait_fence(device, memory_lane(device), *back.done);
    back.storage->note_use(memory_lane(device));
    back.done = {};
}

}  // namespace yoke
