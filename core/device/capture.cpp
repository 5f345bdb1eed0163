#include "core/device/capture.h"

#include "core/base/log.h"
#include "core/device/deferred_error.h"
#include "core/device/stream_table.h"

namespace yoke {

CaptureStream::CaptureStream(Device &device) : device_(device)
{
    const yoke_backend &backend = *device.backend;
    if (!backend.stream_create) fail_no_streams(device);
    check_usable(device);
    check_backend(backend.stream_create(device.handle, 0, &native_), "stream_create",
                  device.name.c_str());
    // A wait beginning from here on sees the capture; for waits begun before, the loop waits.
    device.captures.fetch_add(1);
    while (const int32_t waits = device.whole_waits.load()) device.whole_waits.wait(waits);
}

CaptureStream::~CaptureStream()
{
    const yoke_status status = device_.backend->stream_destroy(device_.handle, native_);
    if (status != YOKE_OK && !tell_loss(device_, status, "stream_destroy"))
        log(LogLevel::kWarn,
            "%s: the stream of a capture was not destroyed: stream_destroy failed with %s",
            device_.name.c_str(), status_name(status));
    device_.captures.fetch_sub(1);
}

bool wait_for_whole(Device &device, yoke_status *status) noexcept
{
    device.whole_waits.fetch_add(1);
    const bool allowed = device.captures.load() == 0;
    if (allowed) *status = device.backend->device_synchronize(device.handle);
    if (device.whole_waits.fetch_sub(1) == 1) device.whole_waits.notify_all();
    return allowed;
}

// Waits for all lanes, even after a failure: the lanes' memory may go back to the driver next. Returns the last
// failure.
static yoke_status wait_for_lanes(Device &device) noexcept
{
    yoke_status last = YOKE_OK;
    const int count = lane_count(device);
    for (int lane = 0; lane < count; ++lane)
        if (const yoke_status status = synchronize_lane(device, static_cast<uint8_t>(lane)))
            last = status;
    return last;
}

yoke_status wait_for_device(Device &device) noexcept
{
    yoke_status status = YOKE_OK;
    return wait_for_whole(device, &status) ? status : wait_for_lanes(device);
}

}  // namespace yoke
