#include "core/ops/tf32.h"

#include "core/base/config.h"

#include <string_view>

namespace yoke {

std::atomic<int> detail::tf32{-1};

bool detail::read_tf32()
{
    const char *text = config("YOKE_ALLOW_TF32");
    int unread = -1;  // what the program set meanwhile stands
    tf32.compare_exchange_strong(unread, text && std::string_view(text) == "1" ? 1 : 0);
    return tf32.load() != 0;
}

void allow_tf32(bool allowed) noexcept
{
    detail::tf32.store(allowed, std::memory_order_relaxed);
}

}  // namespace yoke
