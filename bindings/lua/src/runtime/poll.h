/* poll.h: callbacks that wait for their turn on the thread of their state. yoke.poll() runs them, and so do waits in
 * which a script sits. */
#ifndef YOKE_LUA_RUNTIME_POLL_H
#define YOKE_LUA_RUNTIME_POLL_H

#include "bindings/lua/src/runtime/error.h"

/* Hangs up a function while the module is opened; they run in this order. Each runs what is due of its kind and returns
 * how many callbacks that were. It leaves the stack as it was, and may raise: the rest of what is due waits on. */
void yl_on_poll(Binding *b, YlDue run);

/* Runs all that is due: how many callbacks that were. Whatever a callback closes may be gone then. */
lua_Integer yl_run_due(lua_State *L, Binding *b);

void yl_open_poll(lua_State *L, Binding *b);

#endif /* YOKE_LUA_RUNTIME_POLL_H */
