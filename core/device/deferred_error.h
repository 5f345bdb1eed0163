// deferred_error.h: errors of a device's work found at a point without a caller to notify, such as a wait before a
// free. The core keeps the errors until the next call that waits for the device on behalf of its caller.
#pragma once

#include "core/device/device.h"

#include <string>

namespace yoke {

// Returns whether the status means a lost device; if so, logs a warning, once for each device. After the loss, every
// wait and every release fails alike, so the caller need not log more.
bool tell_loss(const Device &device, yoke_status status, const char *call) noexcept;

// Logs the error as a warning (once, where the device is lost), and keeps the first error of the device until a call
// raises it.
void defer_error(const Device &device, yoke_status status, const std::string &text) noexcept;

// Keeps the first error as defer_error() does, without logging: the waiter for the work gets the error too.
// `failure`: number of the error, as in Error.
void defer_error_of_work(const Device &device, yoke_status status, const std::string &text,
                         uint64_t failure) noexcept;
// Forgets the deferred errors of this failure, on all devices: the caller that began the work has got the error, so
// no other caller needs it.
void forget_deferred_error(uint64_t failure) noexcept;

// Calls of collectives for which a wait of the host program waits.
enum class Behind {
    kFollowed,  // calls behind which a stream has come, for a read of memory
    kAll,       // all issued calls, for a wait for the whole device
};

// Raises the deferred error of this device, once, or of a device whose memory was copied here. First waits for work
// unsettled at the call, so that the host program does not read a result about to be reported wrong. Raises
// Interrupted. Call it before the wait in the driver, which nothing can end, and after it.
void raise_deferred_error(const Device &device, Behind behind = Behind::kFollowed);
// Returns whether raise_deferred_error would wait.
bool has_unsettled(const Device &device) noexcept;
// Notes that memory of `source` is copied to `target`: reads of `target` wait for unsettled work of `source` as well.
void note_copied(const Device &target, const Device &source) noexcept;

// Device work that may still turn out wrong after the device has done it, from begin to settle or destruction.
// Example: a collective whose ranks have not compared their calls yet. The settling thread defers the error first.
class Unsettled {
public:
    Unsettled() = default;
    ~Unsettled() { settle(); }
    Unsettled(const Unsettled &) = delete;
    Unsettled &operator=(const Unsettled &) = delete;

    // Begins unsettled work. Without memory for the note, no thread waits for the work.
    void begin(const Device &device, Behind reads) noexcept;
    // Notes that a stream has come behind the work.
    void note_followed() noexcept;
    void settle() noexcept;
    // Marks the calling thread as a thread that settles work. Such a thread does not wait for unsettled work, since
    // it would wait for itself.
    static void settle_here() noexcept;

private:
    const Device *device_ = nullptr;
    uint64_t number_ = 0;
};

}  // namespace yoke
