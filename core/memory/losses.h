// losses.h: memory that a backend did not take back. The report may call the host program's callback, which may
// allocate: so losses are noted under a lock and reported without the lock.
#pragma once

#include "core/device/device.h"

#include <vector>

namespace yoke {

void tell_loss_of(const Device &device, yoke_status status, const char *call,
                  uint64_t bytes) noexcept;

class Losses {
public:
    // Notes a failed release for tell(); ignores YOKE_OK. Without host memory for the note, the loss is not reported.
    void note(yoke_status status, const char *call, uint64_t bytes) noexcept;
    void tell(const Device &device) const noexcept;
    void swap(Losses &other) noexcept { all_.swap(other.all_); }

private:
    struct Loss {
        yoke_status status;
        const char *call;
        uint64_t bytes;
    };
    std::vector<Loss> all_;
};

}  // namespace yoke
