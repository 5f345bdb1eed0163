/* shape.h: x.shape and similar lists of integers, which print and compare by value. */
#ifndef YOKE_LUA_VALUES_SHAPE_H
#define YOKE_LUA_VALUES_SHAPE_H

#include "bindings/lua/src/runtime/state.h"

/* Pushes a list of integers, counted from 1: tostring gives "{2, 3}", == compares the numbers, .. joins the text. */
void yl_push_shape(lua_State *L, const int64_t *items, int64_t count);

/* Makes the class; the module's table, on top of the stack, has its metatable as `shape_class`. */
void yl_open_shape(lua_State *L, Binding *b);

#endif /* YOKE_LUA_VALUES_SHAPE_H */
