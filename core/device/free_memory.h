// free_memory.h: how much memory a device has for this process: of the host, the least of what the machine, the control
// groups and the limits of the process leave.
#pragma once

#include "core/base/cgroup.h"
#include "core/device/device.h"

#include <string>

namespace yoke {

struct FreeMemory {
    uint64_t free = 0, total = 0;
    std::string
        limit;  // what allows less than the machine has: "the control group's limit in /…", "RLIMIT_AS (ulimit -v)"
    bool kills = false;  // who goes beyond that limit is ended by the kernel, and not refused
};

// What the backend says, within the limits. A failure is the backend's.
yoke_status free_memory_on(const Device &device, FreeMemory *free_memory);

namespace detail {
// Bytes that a process has and may have of its address space and of its data; a limit of UINT64_MAX is none.
struct ProcessLimits {
    uint64_t address_space, address_space_limit, data, data_limit;
};
ProcessLimits process_limits();
// `free_memory` within limits, of which the tightest is named.
void limit_free_memory(FreeMemory &free_memory, const Groups &groups, const ProcessLimits &process);
// Where tests put groups of their own.
extern Groups (*groups_of_process)();
}  // namespace detail

}  // namespace yoke
