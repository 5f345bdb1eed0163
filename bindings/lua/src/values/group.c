#include "bindings/lua/src/values/group.h"

#include "bindings/lua/src/values/convert.h"

/* Returns whether the status has outside causes. Such a status comes back as nil and an error. */
static int is_told(yoke_status status)
{
    return status == YOKE_E_COMM || status == YOKE_E_TIMEOUT || status == YOKE_E_CANCELLED ||
           status == YOKE_E_FORKED || status == YOKE_E_IO;
}

int yl_told(lua_State *L, Binding *b, yoke_status status)
{
    if (is_told(status)) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

int32_t yl_rank_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const int64_t number = yl_int_arg(L, b, index, call, name);
    if (number != (int32_t)number)
        yl_raise(L, b, YOKE_E_VALUE, call, "argument '%s' is %I; it must fit in 32 bits", name,
                 (lua_Integer)number);
    return (int32_t)number;
}

/* Returns a number of seconds. Raises unless the number is above 0, because 0 means a default in C. */
double yl_seconds_arg(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    const double seconds = yl_number_arg(L, b, index, call, name);
    if (!(seconds > 0))
        yl_raise(L, b, YOKE_E_VALUE, call, "argument '%s' is %f; it takes seconds, more than 0",
                 name, seconds);
    return seconds;
}
