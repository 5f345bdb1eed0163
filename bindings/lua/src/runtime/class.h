/*
 * class.h: classes of handles. A handle is a userdata with a reference to an object of the library. It is pushed
 * empty, filled by a call, and empty again after close(), __close or __gc.
 */
#ifndef YOKE_LUA_RUNTIME_CLASS_H
#define YOKE_LUA_RUNTIME_CLASS_H

#include "bindings/lua/src/runtime/arguments.h"

typedef struct YlClass {
    const char *name;   /* name of the metatable, shown to scripts in its place */
    const char *wanted; /* wanted value in errors: "a stream" */
    const char *closed; /* text of errors about a closed handle; NULL: scripts cannot close */
    void (*release)(void *object); /* NULL: handles own no object */
    size_t size; /* size of the userdata if more data follows the object, else 0 */
} YlClass;

/* Pushes an empty handle and returns the address for the object, filled by the caller. */
void *yl_push_handle(lua_State *L, const YlClass *class);

/* Returns the object of the handle at `index`; raises for other values and for a closed handle. */
void *yl_need_handle(lua_State *L, Target target, int index, const YlClass *class);
/* Returns the object of the handle at 1 for the method `call`; raises as yl_need_handle does. */
void *yl_need_self(lua_State *L, const YlClass *class, const char *call);
/* Returns the object of the handle at `index`; NULL for a closed handle and for any other value. */
void *yl_test_handle(lua_State *L, int index, const YlClass *class);

/* Makes the class known to the state: with __gc, and with close() and __close if scripts may close. Adds `methods`
 * and `events`, each or NULL. An event has the table of methods as second upvalue; an event named __index finds
 * methods itself. */
void yl_open_class(lua_State *L, Binding *b, const YlClass *class, const luaL_Reg *methods,
                   const luaL_Reg *events);

/* Registers the class of a userdata with a separate layout, such as handles of callbacks. */
void yl_open_registration(lua_State *L, Binding *b, const char *name, const luaL_Reg *methods,
                          const luaL_Reg *events);

#endif /* YOKE_LUA_RUNTIME_CLASS_H */
