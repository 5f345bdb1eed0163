/* poll.h: callbacks of a state that must run on its thread, by yoke.poll() and by waits of a script. */
#ifndef YOKE_LUA_RUNTIME_POLL_H
#define YOKE_LUA_RUNTIME_POLL_H

#include "bindings/lua/src/runtime/error.h"

/* Registers a function when the module is opened; functions run in this order. Each runs the due callbacks of its
 * kind and returns their number. It leaves the stack unchanged, and may raise: the rest of the due callbacks waits
 * on. */
void yl_on_poll(Binding *b, YlDue run);

/* Runs all due callbacks and returns their number. Objects closed by a callback may then be gone. */
lua_Integer yl_run_due(lua_State *L, Binding *b);

void yl_open_poll(lua_State *L, Binding *b);

#endif /* YOKE_LUA_RUNTIME_POLL_H */
