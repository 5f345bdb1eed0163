/* interrupt.h: waits that end when the script is to hear something: an interpreter's handler of Ctrl-C sets a debug
 * hook, which raises at the script's next step. */
#ifndef YOKE_LUA_RUNTIME_INTERRUPT_H
#define YOKE_LUA_RUNTIME_INTERRUPT_H

#include "bindings/lua/src/runtime/state.h"

/* The debug hooks of a coroutine and of its state's main one, as a wait found them. */
typedef struct YlWait {
    struct YlWait *outer;
    struct {
        lua_State *L;
        lua_Hook hook;
        int mask, count;
    } found[2];
} YlWait;

/* A call that may wait for long is between these two, and raises nothing there. A hook that is set meanwhile ends it.
 * */
void yl_begin_wait(lua_State *L, YlWait *wait);
void yl_end_wait(const YlWait *wait);

/* Gives a hook that waits its turn, where it may raise. */
void yl_let_hook_run(lua_State *L);

#endif /* YOKE_LUA_RUNTIME_INTERRUPT_H */
