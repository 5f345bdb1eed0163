#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const yoke_api *yoke;

void fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

void check(yoke_status status)
{
    if (status) fail(yoke->last_error()->message);
}

static void tell(void *user, int32_t level, const char *message)
{
    (void)user;
    if (level <= YOKE_LOG_WARN) fprintf(stderr, "%s\n", message);
}

void open_library(void)
{
    void *library = dlopen("libyoke.so.0", RTLD_NOW | RTLD_LOCAL);
    const yoke_api *(*get_api)(uint32_t major, uint32_t min_minor);
    if (!library) fail(dlerror()); /* is its folder in LD_LIBRARY_PATH? */
    *(void **)&get_api = dlsym(library, "yoke_get_api");
    yoke = get_api ? get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR) : NULL;
    if (!yoke) fail("libyoke.so.0 is older than this program; install a newer libyoke");
    check(yoke->log_set_callback(tell, NULL, NULL));
}

void replace(yoke_tensor **x, yoke_tensor *by)
{
    yoke->tensor_release(*x);
    *x = by;
}

yoke_tensor *rows_of(yoke_tensor *x, int64_t first, int64_t last)
{
    yoke_tensor *out;
    check(yoke->slice(x, 0, &first, &last, 1, &out));
    return out;
}

void set_rows(yoke_tensor *x, int64_t first, int64_t last, yoke_tensor *values)
{
    yoke_tensor *place = rows_of(x, first, last);
    check(yoke->copy_(place, values));
    yoke->tensor_release(place);
}
