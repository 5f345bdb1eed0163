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
    yoke_tensor **tensors; /* where the next list of tensors goes, */
    size_t room;           /* capacity of the space for tensors */
} Lists;

/* Converts the value at `index`; nil is NONE. Raises for an invalid value; allocates nothing otherwise. Lists go to
 * `lists`. If a list has outgrown its space since the sizing, raises. */
yoke_arg yl_convert(lua_State *L, Target target, ArgType type, int index, Lists *lists);

/* The dtype of a name; YOKE_NONE for nil. */
yoke_dtype yl_need_dtype(lua_State *L, Target target, int index);

/* The list of tensors at `index`; its room is pushed. Handles are borrowed until the next allocation. */
yoke_arg yl_tensors_arg(lua_State *L, Target target, int index);

#endif /* YOKE_LUA_VALUES_CONVERT_H */
