#include "core/tensor/carrier.h"

#include "core/base/error.h"
#include "core/base/immortal.h"
#include "core/device/inner_stream.h"

#include <mutex>
#include <unordered_map>

namespace yoke {

namespace {

// Copy streams by device, made at first use and never released.
struct Carriers {
    std::mutex mutex;
    std::unordered_map<const Device *, Ref<Stream>> streams;
};
Carriers &carriers = immortal<Carriers>();

const Lane &carrier_of(Device &device)
{
    const std::lock_guard lock(carriers.mutex);
    Ref<Stream> &stream = carriers.streams[&device];
    if (!stream.present()) stream = make_inner_stream(device);
    return stream->lane;
}

}  // namespace

Ref<Fence> carry(Storage &storage, void *to, const void *from, uint64_t bytes, int32_t direction,
                 const char *call)
{
    Device &device = *storage.device;
    check_usable(device);
    const Lane &carrier = carrier_of(device);
    if (const Ref<Fence> ready = fence_behind(device, memory_lane(device)); ready.present())
        wait_fence(device, carrier.id, *ready);
    storage.note_use(carrier.id);
    check_backend(device.backend->copy(device.handle, to, from, bytes, direction, carrier.native),
                  call, device.name.c_str());
    return fence_behind(device, carrier.id);
}

}  // namespace yoke
