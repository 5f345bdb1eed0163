/*
 * module.c: a backend module with a single defect chosen by WRONG_<thing>; without the macro, a whole module. The
 * module has no devices and cannot do any work, because the registry only reads the table.
 */
#include "core/backend/backend.h"
#include "core/backend/ops.inc"

#include <string.h>

static yoke_status device_count(int32_t *count)
{
    *count = 0;
    return YOKE_OK;
}
static void why_unavailable(char *text, uint64_t capacity)
{
    strncpy(text, "a module of the tests has no devices; none can be added", capacity);
}
static yoke_status device_open(int32_t index, void **device)
{
    (void)index;
    (void)device;
    return YOKE_E_INDEX;
}
static void device_close(void *device)
{
    (void)device;
}
static yoke_status device_info(void *device, yoke_backend_device_info *info)
{
    (void)device;
    (void)info;
    return YOKE_E_INDEX;
}
static yoke_status synchronize(void *device)
{
    (void)device;
    return YOKE_OK;
}
static yoke_status alloc(void *device, uint64_t bytes, void **pointer)
{
    (void)device;
    (void)bytes;
    (void)pointer;
    return YOKE_E_OOM;
}
static yoke_status free_block(void *device, void *pointer, uint64_t bytes)
{
    (void)device;
    (void)pointer;
    (void)bytes;
    return YOKE_OK;
}
static yoke_status mem_info(void *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)device;
    *free_bytes = *total_bytes = 0;
    return YOKE_OK;
}
static yoke_status copy(void *device, void *dst, const void *src, uint64_t bytes, int32_t direction,
                        void *stream)
{
    (void)device;
    (void)dst;
    (void)src;
    (void)bytes;
    (void)direction;
    (void)stream;
    return YOKE_OK;
}
static yoke_status fill(void *device, void *dst, uint8_t value, uint64_t bytes, void *stream)
{
    (void)device;
    (void)dst;
    (void)value;
    (void)bytes;
    (void)stream;
    return YOKE_OK;
}
static const char *build_info(void)
{
    return "a module of the tests";
}
static void after_fork(void) {}

static const yoke_kernel_fn kernels[YOKE_OP_COUNT];

static yoke_backend table = {
    .struct_size = sizeof(yoke_backend),
    .abi = YOKE_BACKEND_ABI,
    .op_table_hash = YOKE_OP_TABLE_HASH,
    .kind = "test",
    .device_count = device_count,
    .why_unavailable = why_unavailable,
    .device_open = device_open,
    .device_close = device_close,
    .device_info = device_info,
    .device_synchronize = synchronize,
    .alloc = alloc,
    .free = free_block,
    .mem_info = mem_info,
    .copy = copy,
    .fill = fill,
    .kernels = kernels,
    .kernel_count = YOKE_OP_COUNT,
    .build_info = build_info,
    .after_fork = after_fork,
};

#ifdef WRONG_SYMBOL
#define GET yoke_backend_get_v0
#else
#define GET yoke_backend_get_v1
#endif

__attribute__((visibility("default"))) yoke_status GET(const yoke_host *host,
                                                       const yoke_backend **out);

yoke_status GET(const yoke_host *host, const yoke_backend **out)
{
    (void)host;
    *out = &table;
#if defined WRONG_HASH
    table.op_table_hash = 0x0123456789abcdefu;
#elif defined WRONG_ABI
    table.abi = 999;
#elif defined WRONG_SIZE
    table.struct_size = 8;
#elif defined WRONG_KIND
    table.kind = "other";
#elif defined WRONG_COUNT
    table.kernel_count = 3;
#elif defined WRONG_ENTRY
    table.copy = 0;
#elif defined WRONG_GROUP
    table.host_alloc = alloc;
#elif defined WRONG_TABLE
    *out = 0;
#elif defined WRONG_STATUS
    return host->set_error(YOKE_E_UNAVAILABLE, 35,
                           "the driver is older than this module; install a newer one");
#endif
    return YOKE_OK;
}
