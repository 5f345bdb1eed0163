#include "core/ops/tf32.h"

#include "core/backend/backend.h"
#include "core/base/config.h"

#include <atomic>
#include <string_view>

namespace yoke {

namespace {

// -1: not yet read from the configuration.
std::atomic<int> tf32{-1};

__attribute__((cold)) bool read_wish()
{
    const char *text = config("YOKE_ALLOW_TF32");
    int unread = -1;  // what the program set meanwhile stands
    tf32.compare_exchange_strong(unread, text && std::string_view(text) == "1" ? 1 : 0);
    return tf32.load() != 0;
}

}  // namespace

bool allows_tf32()
{
    const int known = tf32.load(std::memory_order_relaxed);
    return known >= 0 ? known != 0 : read_wish();
}

uint32_t tf32_flag()
{
    return thread_state().fits_tf32 || allows_tf32() ? YOKE_LAUNCH_TF32 : 0;
}

void allow_tf32(bool allowed) noexcept
{
    tf32.store(allowed, std::memory_order_relaxed);
}

}  // namespace yoke
