/*
 * convert.h: Lua values to the values of the C API, driven by the types that the op table states.
 */
#ifndef YOKE_LUA_VALUES_CONVERT_H
#define YOKE_LUA_VALUES_CONVERT_H

#include "bindings/lua/src/values/arg_type.h"
#include "bindings/lua/src/values/handles.h"
#include "bindings/lua/src/values/tensor.h"

/* Space for the items of all lists in a call, so that no code allocates while handles are held. Lists of ints are
 * shapes and axes; the space exceeds the need of any valid call. */
#define YL_MAX_INTS (4 * YOKE_MAX_NDIM)
typedef struct Lists {
    int64_t items[YL_MAX_INTS];
    int used;
    double numbers[YOKE_MAX_NDIM]; /* items of a call's only list of numbers */
    yoke_tensor **tensors;         /* where the next list of tensors goes, */
    size_t room;                   /* capacity of the space for tensors */
} Lists;

/* Returns the value at `index` as an argument; nil is NONE. Raises for an invalid value; allocates nothing otherwise.
 * Lists go to `lists`. If a list has outgrown its space since the sizing, raises. */
yoke_arg yl_convert(lua_State *L, Target target, ArgType type, int index, Lists *lists);

/* Returns the dtype of a name; YOKE_NONE for nil. Raises for any other value. */
yoke_dtype yl_need_dtype(lua_State *L, Target target, int index);

/* Returns the list of tensors at `index` as an argument, and pushes the space for its handles. Handles are borrowed
 * until the next allocation. Raises for any other value. */
yoke_arg yl_tensors_arg(lua_State *L, Target target, int index);

#endif /* YOKE_LUA_VALUES_CONVERT_H */
