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

// Writes the device's free memory, on the host within the process's limits, to *free_memory. Returns the backend's
// status.
yoke_status free_memory_on(const Device &device, FreeMemory *free_memory);

namespace detail {
// Bytes used and allowed of a process's address space and data; a limit of UINT64_MAX means no limit.
struct ProcessLimits {
    uint64_t address_space, address_space_limit, data, data_limit;
};
ProcessLimits process_limits();
// Lowers `free_memory` to the limits of the control groups and of the process, and names the tightest limit.
void limit_free_memory(FreeMemory &free_memory, const Groups &groups, const ProcessLimits &process);
// Function that returns the control groups of the process; tests replace it.
extern Groups (*groups_of_process)();
}  // namespace detail

}  // namespace yoke
