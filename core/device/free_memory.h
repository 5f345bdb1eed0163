// free_memory.h: free memory of a device for this process. For the host device, the least of the limits of the
// machine, the control groups and the process.
#pragma once

#include "core/base/cgroup.h"
#include "core/device/device.h"

#include <string>

namespace yoke {

struct FreeMemory {
    uint64_t free = 0, total = 0;
    std::string
        limit;  // limit below the machine's memory: "the control group's limit in /…", "RLIMIT_AS (ulimit -v)"
    bool kills = false;  // beyond the limit, the kernel ends the process instead of refusing
};

// Returns the backend's free memory, within the limits. A failure is the backend's.
yoke_status free_memory_on(const Device &device, FreeMemory *free_memory);

namespace detail {
// Bytes used and allowed of a process's address space and data; a limit of UINT64_MAX means no limit.
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
