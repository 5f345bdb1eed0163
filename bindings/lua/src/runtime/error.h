/* error.h: error objects {code, message, device, call, where}. */
#ifndef YOKE_LUA_RUNTIME_ERROR_H
#define YOKE_LUA_RUNTIME_ERROR_H

#include "bindings/lua/src/runtime/state.h"

/* Pushes the last failure of this thread as an error object. */
void yl_push_last_error(lua_State *L, Binding *b);
/* Raises the thread's last failure. */
int yl_raise_last(lua_State *L, Binding *b);
/* Pushes nil and the last failure, for functions that deal with the world. Returns 2. */
int yl_nil_error(lua_State *L, Binding *b);

/* Raises a misuse; `format` as in lua_pushfstring. `call` names the function as scripts spell it. */
int yl_raise(lua_State *L, Binding *b, yoke_status code, const char *call, const char *format, ...);
/* Raises "there is no argument 'dim'; did you mean 'axis'? sum(x: tensor, …) -> tensor" for an unknown keyword. */
int yl_raise_keyword(lua_State *L, Binding *b, const char *call, const char *key,
                     const char *const *names, int count, const char *signature);
/* Returns "; did you mean 'axis'?", or advice on a word of other libraries, and pushes the text. Returns "" without a
 * push if none of `names` is near to `key`. */
const char *yl_meant(lua_State *L, const char *key, const char *const *names, int count);

/* Raises unless `status` is success. */
static inline void yl_check(lua_State *L, Binding *b, yoke_status status)
{
    if (status) yl_raise_last(L, b);
}

/* Makes the class of error objects, and adds core.raise and core.meant. */
void yl_open_error(lua_State *L, Binding *b);

#endif /* YOKE_LUA_RUNTIME_ERROR_H */
