/* interrupt.h: waits ended by signals to the script. An interpreter's handler of Ctrl-C sets a debug hook, and the
 * hook raises at the script's next step. */
#ifndef YOKE_LUA_RUNTIME_INTERRUPT_H
#define YOKE_LUA_RUNTIME_INTERRUPT_H

#include "bindings/lua/src/runtime/state.h"

/* Debug hooks of a coroutine and of its state's main coroutine at the start of a wait. */
typedef struct YlWait {
    struct YlWait *outer;
    struct {
        lua_State *L;
        lua_Hook hook;
        int mask, count;
    } found[2];
} YlWait;

/* Enclose a long wait; between the two calls no code raises. If a debug hook is set meanwhile, the wait ends. */
void yl_begin_wait(lua_State *L, YlWait *wait);
void yl_end_wait(const YlWait *wait);

/* Runs a waiting hook at a place where it may raise. */
void yl_let_hook_run(lua_State *L);

#endif /* YOKE_LUA_RUNTIME_INTERRUPT_H */
