// The CPU device: its name, its memory, and the build's description.
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/available.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/onednn.h"

namespace yoke::cpu {

Device g_device{0};
static char g_build_info[128];

yoke_status check_device(const void *device, const char *call)
{
    if (device == &g_device) return YOKE_OK;
    return fail(YOKE_E_VALUE, "cpu: %s was given a device that is not the CPU", call);
}

yoke_status device_count(int32_t *count)
{
    *count = 1;
    return YOKE_OK;
}

void why_unavailable(char *text, uint64_t capacity)
{
    if (capacity) text[0] = 0;
}

yoke_status device_open(int32_t index, void **device)
{
    if (index != 0)
        return fail(YOKE_E_INDEX, "cpu:%d does not exist; the only CPU device is cpu:0", index);
    *device = &g_device;
    return YOKE_OK;
}

void device_close(void *) {}

yoke_status device_synchronize(void *device)
{
    return check_device(device, "device_synchronize");
}

// Finds "key<spaces>:<spaces>value" in a file of /proc and copies the value up to the end of the line. Returns false
// if the file or the key is missing.
static bool read_entry(const char *path, const char *key, char *value, size_t capacity)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *text = strchr(line, ':');
        if (!text) continue;
        text += 1 + strspn(text + 1, " \t");
        snprintf(value, capacity, "%.*s", (int)strcspn(text, "\n"), text);
        found = true;
    }
    fclose(file);
    return found;
}

static uint64_t read_kib(const char *key)
{
    char text[64];
    return read_entry("/proc/meminfo", key, text, sizeof(text)) ? strtoull(text, nullptr, 10) * 1024
                                                                : 0;
}

uint64_t available_memory()
{
    return read_kib("MemAvailable");
}

// Returns the free and the total memory of the machine. The core knows the process's limits.
yoke_status mem_info(void *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    if (yoke_status status = check_device(device, "mem_info")) return status;
    uint64_t total = read_kib("MemTotal"), available = available_memory();
    if (!total) total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (!available)
        available = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    *free_bytes = available < total ? available : total;
    *total_bytes = total;
    return YOKE_OK;
}

static int32_t usable_cores()
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
    return (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

yoke_status device_info(void *device, yoke_backend_device_info *info)
{
    uint64_t available = 0, total = 0;
    if (yoke_status status = mem_info(device, &available, &total)) return status;
    uint32_t size = info->struct_size;
    memset(info, 0, sizeof(*info));
    info->struct_size = size;
    if (!read_entry("/proc/cpuinfo", "model name", info->name, sizeof(info->name)))
        snprintf(info->name, sizeof(info->name), "CPU");
    info->total_memory = total;
    info->multiprocessors = usable_cores();
    info->alignment = 64;
    if (onednn_has_bf16()) info->matrix_dtypes = 1u << YOKE_BF16;
    return YOKE_OK;
}

void describe_build(const char *isa)
{
    char engine[64];
    describe_onednn(engine, sizeof(engine));
    snprintf(g_build_info, sizeof(g_build_info), "%s; %s", engine, isa);
}

const char *build_info()
{
    return g_build_info;
}

}  // namespace yoke::cpu
