// The function table for programs that load the library with dlopen.
#include "capi/src/guard.h"
#include "yoke/yoke.h"

using namespace yoke;
using namespace yoke::capi;

namespace {
constexpr yoke_api kApi = {
    sizeof(yoke_api),
    YOKE_VERSION_MAJOR,
    YOKE_VERSION_MINOR,
    0,
#include "capi/src/table.inc"
};
}  // namespace

const yoke_api *yoke_get_api(uint32_t major, uint32_t min_minor)
{
    return guard_value("yoke_get_api", static_cast<const yoke_api *>(nullptr), [&] {
        if (major != kApi.major || min_minor > kApi.minor)
            fail(
                YOKE_E_UNSUPPORTED,
                "get_api: the program needs version %u.%u or later of major %u, but this library has %u.%u; %s",
                major, min_minor, major, kApi.major, kApi.minor,
                major > kApi.major || (major == kApi.major && min_minor > kApi.minor)
                    ? "use a newer libyoke"
                    : "build against its headers");
        return &kApi;
    });
}
