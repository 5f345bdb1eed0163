#include "core/device/free_memory.h"

#include "core/base/text.h"

#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <sstream>

namespace yoke {

namespace {

void narrow(FreeMemory &free_memory, uint64_t used, uint64_t limit, const std::string &name,
            bool kills)
{
    free_memory.total = std::min(free_memory.total, limit);
    const uint64_t left = used < limit ? limit - used : 0;
    if (left >= free_memory.free) return;
    free_memory.free = left;
    free_memory.limit = name;
    free_memory.kills = kills;
}

uint64_t soft_limit(int resource)
{
    rlimit found{};
    const bool known = getrlimit(static_cast<__rlimit_resource_t>(resource), &found) == 0;
    return known && found.rlim_cur != RLIM_INFINITY ? found.rlim_cur : UINT64_MAX;
}

}  // namespace

Groups (*detail::groups_of_process)() = Groups::of_process;

detail::ProcessLimits detail::process_limits()
{
    ProcessLimits all{0, soft_limit(RLIMIT_AS), 0, soft_limit(RLIMIT_DATA)};
    if (all.address_space_limit == UINT64_MAX && all.data_limit == UINT64_MAX) return all;
    // Pages: size, resident, shared, text, 0, data.
    std::istringstream pages(file_text("/proc/self/statm"));
    uint64_t size = 0, skipped = 0, data = 0;
    pages >> size >> skipped >> skipped >> skipped >> skipped >> data;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    all.address_space = size * page;
    all.data = data * page;
    return all;
}

void detail::limit_free_memory(FreeMemory &free_memory, const Groups &groups,
                               const ProcessLimits &process)
{
    const Groups::Memory group = groups.memory();
    if (group.limit && group.limit < free_memory.total)
        narrow(free_memory, group.used, group.limit, "the control group's limit in " + group.file,
               true);
    if (process.address_space_limit != UINT64_MAX)
        narrow(free_memory, process.address_space, process.address_space_limit,
               "RLIMIT_AS (ulimit -v)", false);
    if (process.data_limit != UINT64_MAX)
        narrow(free_memory, process.data, process.data_limit, "RLIMIT_DATA (ulimit -d)", false);
}

yoke_status free_memory_on(const Device &device, FreeMemory *free_memory)
{
    *free_memory = {};
    const yoke_status status =
        device.backend->mem_info(device.handle, &free_memory->free, &free_memory->total);
    if (status == YOKE_OK && device.host)
        detail::limit_free_memory(*free_memory, detail::groups_of_process(),
                                  detail::process_limits());
    return status;
}

}  // namespace yoke
