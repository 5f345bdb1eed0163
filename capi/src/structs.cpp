#include "capi/src/structs.h"

namespace yoke::capi {

void check_struct_size(uint32_t size, size_t known, const char *call, const char *argument)
{
    // Far above any struct to come, far below what an uninitialised field tends to hold.
    constexpr uint32_t kLargest = 4096;
    if (size < sizeof(uint32_t) || size > kLargest)
        fail(YOKE_E_VALUE,
             "%s: struct_size of argument '%s' is %u; set it to its sizeof, %zu in this version",
             short_name(call), argument, size, known);
}

}  // namespace yoke::capi
