#include "core/memory/losses.h"

#include "core/base/log.h"
#include "core/device/deferred_error.h"

#include <new>

namespace yoke {

void tell_loss_of(const Device &device, yoke_status status, const char *call,
                  uint64_t bytes) noexcept
{
    if (status != YOKE_OK && !tell_loss(device, status, call))
        log(LogLevel::kError, "%s: a block of %llu bytes could not be released: %s: %s",
            device.name.c_str(), static_cast<unsigned long long>(bytes), call, status_name(status));
}

void Losses::note(yoke_status status, const char *call, uint64_t bytes) noexcept
{
    if (status == YOKE_OK) return;
    try {
        all_.push_back({status, call, bytes});
    } catch (const std::bad_alloc &) {
        return;
    }
}

void Losses::tell(const Device &device) const noexcept
{
    for (const Loss &loss : all_) tell_loss_of(device, loss.status, loss.call, loss.bytes);
}

}  // namespace yoke
