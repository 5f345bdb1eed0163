/* script.h: line of the script that makes a call, noted while its state runs, and reported when the library asks in
 * this thread. */
#ifndef YOKE_LUA_RUNTIME_SCRIPT_H
#define YOKE_LUA_RUNTIME_SCRIPT_H

#include "bindings/lua/src/runtime/state.h"

/* Notes the innermost line outside the package yoke, until yl_forget_line; code between them does not raise. `at`
 * keeps the texts. */
void yl_note_line(lua_State *L, lua_Debug *at);
void yl_forget_line(void);

/* Has the library's questions answered with the present line of the coroutine; NULL: no longer. */
void yl_tell_line_of(lua_State *L);

/* Implements tell_lines(): marks the calling file as part of the package, and reports lines from now on. */
int yl_tell_lines(lua_State *L);

#endif /* YOKE_LUA_RUNTIME_SCRIPT_H */
