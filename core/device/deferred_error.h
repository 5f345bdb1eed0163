// deferred_error.h: deferred errors: errors of a device's work that the core finds where it has no caller to tell, as
// in a wait before a free. The core keeps them until the next call that waits for the device on behalf of its caller.
#pragma once

#include "core/device/device.h"

#include <string>

namespace yoke {

// Warns of a lost device once. Nothing of it can be waited for or given back, and every attempt fails alike: a line of
// warning for the first, and none for the others. True if that is what the status of the call says: no more need be
// said.
bool tell_loss(const Device &device, yoke_status status, const char *call) noexcept;

// Logs the error as a warning (once, where the device is lost), and keeps the first error of the device until a call
// raises it.
void defer_error(const Device &device, yoke_status status, const std::string &text) noexcept;

// Keeps the first error as defer_error() does, and logs nothing: who waits for the work is told the error, too.
// `failure`: its number, as Error has it.
void defer_error_of_work(const Device &device, yoke_status status, const std::string &text,
                         uint64_t failure) noexcept;
// Forgets the deferred errors of this failure, of all devices: who began the work has been told, so nobody else is.
void forget_deferred_error(uint64_t failure) noexcept;

// Raises the deferred error of this device, once. Waits before until work that is unsettled now is settled, so that the
// host reads no result that is about to be called wrong.
void raise_deferred_error(const Device &device);

// Work of a device which may still turn out to be wrong, though the device has done it: of a collective whose ranks
// have not compared yet what they called. From begin to settle, or to its end. Who settles work defers its error
// before.
class Unsettled {
public:
    Unsettled() = default;
    ~Unsettled() { settle(); }
    Unsettled(const Unsettled &) = delete;
    Unsettled &operator=(const Unsettled &) = delete;

    // Does nothing for work that has begun. If there is no memory to note it, nobody waits for it.
    void begin(const Device &device) noexcept;
    void settle() noexcept;
    // The calling thread settles work, and so waits for none.
    static void settle_here() noexcept;

private:
    const Device *device_ = nullptr;
    uint64_t number_ = 0;
};

}  // namespace yoke
