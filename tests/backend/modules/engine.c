/*
 * engine.c: a module that is only an engine of collectives, with a single defect chosen by WRONG_<thing>; without the
 * macro, a whole engine. The engine cannot do any work, because the registry only reads the table.
 */
#include "core/backend/comm.h"

#include <string.h>

static yoke_status unique_id(void *id, double timeout_s)
{
    (void)timeout_s;
    memset(id, 0, YOKE_COMM_ID_BYTES);
    return YOKE_OK;
}
static yoke_status init(const yoke_comm_member *member, void **comm)
{
    (void)member;
    (void)comm;
    return YOKE_E_UNSUPPORTED;
}
static yoke_status split(void *comm, const yoke_comm_member *member, void **out)
{
    (void)comm;
    return init(member, out);
}
static yoke_status call(void *comm, const yoke_collective *record)
{
    (void)comm;
    (void)record;
    return YOKE_E_UNSUPPORTED;
}
static yoke_status plain(void *comm)
{
    (void)comm;
    return YOKE_E_UNSUPPORTED;
}
static void destroy(void *comm)
{
    (void)comm;
}
static yoke_status mem_alloc(void *comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault)
{
    (void)comm;
    (void)fault;
    (void)bytes;
    (void)pointer;
    return YOKE_E_OOM;
}
static yoke_status mem_free(void *comm, void *pointer, uint64_t bytes)
{
    (void)comm;
    (void)pointer;
    (void)bytes;
    return YOKE_E_VALUE;
}
static void describe(void *comm, char *text, uint64_t capacity)
{
    (void)comm;
    strncpy(text, "an engine of the tests", capacity);
}
static yoke_status async_error(void *comm, yoke_comm_fault *fault)
{
    (void)comm;
    (void)fault;
    return YOKE_OK;
}
static void after_fork(void) {}

#ifdef WRONG_LATE
static int32_t version(double timeout_s, char *why, uint64_t capacity)
{
    (void)timeout_s;
    (void)why;
    (void)capacity;
    return 1;
}
#endif

static yoke_backend_comm table = {
    .struct_size = sizeof(yoke_backend_comm),
    .abi = YOKE_BACKEND_ABI,
    .name = "engine",
    .unique_id = unique_id,
    .init = init,
    .split = split,
    .call = call,
    .group_begin = plain,
    .group_end = plain,
    .abort = plain,
    .hang_up = NULL,
    .destroy = destroy,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .describe = describe,
    .async_error = async_error,
    .after_fork = after_fork,
};

#ifdef WRONG_SYMBOL
#define GET yoke_comm_get_v0
#else
#define GET yoke_comm_get_v1
#endif

__attribute__((visibility("default"))) yoke_status GET(const yoke_host *host,
                                                       const yoke_backend_comm **out);

yoke_status GET(const yoke_host *host, const yoke_backend_comm **out)
{
    (void)host;
#if defined(WRONG_STATUS)
    return host->set_error(YOKE_E_IO, 7, "the engine of the tests gives up");
#elif defined(WRONG_ABI)
    table.abi = 999;
#elif defined(WRONG_SIZE)
    table.struct_size = 8;
#elif defined(WRONG_NAME)
    table.name = "other";
#elif defined(WRONG_ENTRY)
    table.abort = NULL;
#elif defined(WRONG_LATE)
    table.is_late = 1;
    table.version = version;
#elif defined(WRONG_LATE_ENTRY)
    table.is_late = 1;
#endif
    *out = &table;
#ifdef WRONG_TABLE
    *out = NULL;
#endif
    return YOKE_OK;
}
