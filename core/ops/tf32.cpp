#include "core/ops/tf32.h"

namespace yoke {

constinit Switch detail::tf32("YOKE_ALLOW_TF32");

void allow_tf32(bool allowed) noexcept
{
    detail::tf32.set(allowed);
}

}  // namespace yoke
