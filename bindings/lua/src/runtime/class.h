/*
 * class.h: classes of handles. A handle is a userdata that owns one reference to an object of the library: it is
 * pushed empty, filled by a call, and empty again after close(), __close or __gc.
 */
#ifndef YOKE_LUA_RUNTIME_CLASS_H
#define YOKE_LUA_RUNTIME_CLASS_H

#include "bindings/lua/src/runtime/arguments.h"

typedef struct YlClass {
    const char *name;   /* of the metatable, and what scripts see in its place */
    const char *wanted; /* what an error asks for: "a stream" */
    const char *closed; /* what it says of a closed one; NULL: scripts cannot close these */
    void (*release)(void *object); /* NULL: handles own nothing */
    size_t size; /* of the userdata where the object has company behind it, else 0 */
} YlClass;

/* Pushes an empty handle and returns its place, a pointer to the object, which the caller fills. */
void *yl_push_handle(lua_State *L, const YlClass *class);

/* The object of the handle at `index`; raises for anything else and for a closed one. */
void *yl_need_handle(lua_State *L, Target target, int index, const YlClass *class);
/* The same for the method `call` of the handle at 1. */
void *yl_need_self(lua_State *L, const YlClass *class, const char *call);
/* The object, or NULL for anything else. */
void *yl_test_handle(lua_State *L, int index, const YlClass *class);

/* Makes the class known to the state: __gc; close() and __close where scripts may close; `methods`, and `events`,
 * each or NULL, the latter with the table of methods as second upvalue. One named __index finds methods itself. */
void yl_open_class(lua_State *L, Binding *b, const YlClass *class, const luaL_Reg *methods,
                   const luaL_Reg *events);

/* Makes the class of a userdata known that has a layout of its own, as handles of callbacks have. */
void yl_open_registration(lua_State *L, Binding *b, const char *name, const luaL_Reg *methods,
                          const luaL_Reg *events);

#endif /* YOKE_LUA_RUNTIME_CLASS_H */
