// fake_kinds.h: the fake backend beside a CPU that `fake` does not control, for choices between kinds of devices.
#pragma once

#include "tests/core/fake_backend.h"

namespace yoke::test {

// Returns the table of a CPU for programs linked without the library's own CPU. `fake` does not control this CPU.
inline yoke_status get_fake_cpu(const yoke_host *, const yoke_backend **out)
{
    static yoke_backend table = fake_table("cpu");
    table.device_count = [](int32_t *count) {
        *count = 1;
        return YOKE_OK;
    };
    table.device_open = [](int32_t, void **device) {
        *device = &table;
        return YOKE_OK;
    };
    table.after_fork = [] {};
    *out = &table;
    return YOKE_OK;
}

// The fake beside the library's own CPU backend.
inline void prepare()
{
    register_backend("cpu", get_fake_cpu);
    register_backend("fake", get_fake);
}

}  // namespace yoke::test
