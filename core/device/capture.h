// capture.h: waiting for a device during the capture of its graphs.
//
// While any stream of a device is being captured, CUDA refuses to wait for the whole device, from any thread and in
// any capture mode; and the attempt breaks the capture. So captures are counted for each device, over all threads.
// During a capture, a wait for the device goes through the lanes:
//   the default stream              by itself
//   streams of Yoke                 each by itself, unused streams too
//   streams of the host program     by a fence behind their present work; if the stream is gone, behind its last work
// The captured stream has no lane, so no thread gives it work, waits for it, or asks whether it is idle. Such a wait
// leaves out work on streams unknown to Yoke. Yoke does not know captures of the host program; waiting during such a
// capture fails as before.
#pragma once

#include "core/device/device.h"

namespace yoke {

// Stream for capturing a graph. While a CaptureStream exists, no thread waits for its device as a whole.
class CaptureStream {
public:
    // Creates the stream, then waits until no thread waits for the device as a whole. Raises YOKE_E_UNSUPPORTED if
    // the backend has no streams.
    explicit CaptureStream(Device &device);
    ~CaptureStream();
    CaptureStream(const CaptureStream &) = delete;
    CaptureStream &operator=(const CaptureStream &) = delete;

    void *native() const noexcept { return native_; }

private:
    Device &device_;
    void *native_ = nullptr;
};

// Waits for all work of the device; during the capture of a graph of the device, lane by lane. Returns the backend's
// status and leaves its message.
yoke_status wait_for_device(Device &device) noexcept;

// Waits for the whole device by one call of the backend; *status receives the backend's status. During the capture of
// a graph of the device, returns false without waiting.
bool wait_for_whole(Device &device, yoke_status *status) noexcept;

}  // namespace yoke
