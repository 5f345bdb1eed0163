// Registration of the backends inside libyoke, because the core knows no backend.
#include "core/backend/registry.h"

extern "C" yoke_status yoke_cpu_backend_get(const yoke_host *host, const yoke_backend **out);

namespace {
[[maybe_unused]] const bool registered =
    (yoke::register_backend("cpu", yoke_cpu_backend_get), true);
}  // namespace
