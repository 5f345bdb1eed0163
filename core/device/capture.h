// capture.h: waiting for a device while graphs of it are captured.
//
// CUDA refuses to wait for a device as a whole while any of its streams is being captured, whichever thread asks and in
// whatever mode the capture is; and the capture is lost. So captures are counted for each device, over all threads, and
// who waits for a device meanwhile waits for one lane of it after another:
//   the default stream              by itself
//   streams of ours                 each by itself, those that rest too
//   streams that the host wrapped   by a fence behind their present work; of one that is gone, behind its last work
// The stream that is captured is none of them: it has no lane, so that nobody gives it work, waits for it, or asks
// whether it is idle. Not waited for, as it would be otherwise, is work on streams that Yoke does not know. A stream
// that the host itself captures is beyond our sight: to wait for it is as wrong as it ever was.
#pragma once

#include "core/device/device.h"

namespace yoke {

// A stream to capture a graph on. While there is one, nobody waits for its device as a whole.
class CaptureStream {
public:
    // Returns once no thread does so any more. Raises YOKE_E_UNSUPPORTED where the backend has no streams.
    explicit CaptureStream(Device &device);
    ~CaptureStream();
    CaptureStream(const CaptureStream &) = delete;
    CaptureStream &operator=(const CaptureStream &) = delete;

    void *native() const noexcept { return native_; }

private:
    Device &device_;
    void *native_ = nullptr;
};

// Waits for all work of the device, in the way that is allowed. Gives the backend's status and leaves its message.
yoke_status wait_for_device(Device &device) noexcept;

// The same, but at once or not at all: false, with nothing done, while a graph of the device is captured.
bool wait_for_whole(Device &device, yoke_status *status) noexcept;

}  // namespace yoke
