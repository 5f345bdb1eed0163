/* handles.h: devices, streams and optimizers as several leaves take them. */
#ifndef YOKE_LUA_VALUES_HANDLES_H
#define YOKE_LUA_VALUES_HANDLES_H

#include "bindings/lua/src/runtime/class.h"

extern const YlClass yl_device_class, yl_stream_class, yl_optimizer_class, yl_state_class,
    yl_work_class, yl_group_class;

/* Pushes a device. A device is a single userdata in a state, so == compares two devices. */
void yl_push_device(lua_State *L, Binding *b, yoke_device *device);

/* Returns the device named by a Device, a spec or an index in the current kind, borrowed; NULL for nil. Raises for
 * any other value. */
yoke_device *yl_need_device(lua_State *L, Target target, int index);

/* Returns the open stream at `index`, borrowed; raises for any other value. */
yoke_stream *yl_need_stream(lua_State *L, Target target, int index);

/* An optimizer's handle. */
typedef struct OptimizerBox {
    yoke_optimizer *optimizer; /* NULL before the fill and after close() */
    const char *kind;          /* "SGD", "Adam" or "AdamW" */
} OptimizerBox;

/* Returns the live optimizer (of yoke.core) at `index`; raises for any other value. */
yoke_optimizer *yl_optimizer_arg(lua_State *L, Binding *b, int index, const char *call,
                                 const char *name);

/* Pushes an empty state, filled by the caller. */
yoke_state **yl_push_state(lua_State *L);
/* Returns the state at `index`; raises for any other value. */
yoke_state *yl_need_state(lua_State *L, Binding *b, int index, const char *call, const char *name);
/* Pushes an empty handle for a work. */
yoke_work **yl_push_work(lua_State *L);

#endif /* YOKE_LUA_VALUES_HANDLES_H */
