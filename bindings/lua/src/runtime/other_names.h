/* other_names.h: PyTorch's names of arguments, which calls take beside their own (core/ops/other_names.def). */
#ifndef YOKE_LUA_RUNTIME_OTHER_NAMES_H
#define YOKE_LUA_RUNTIME_OTHER_NAMES_H

#include "bindings/lua/src/runtime/error.h"

/* Argument of a call, found by another name. */
typedef struct OtherName {
    const char *other;
    int place;   /* among the call's own names; -1 for an unknown name */
    int is_flag; /* true stands for 1 and false for 0 */
} OtherName;

/* Returns what `key` means in a call with these `count` arguments. */
OtherName yl_find_other_name(const char *call, const char *key, const char *const *names,
                             int count);

/* Replaces the flag on the top of the stack by its number; raises for a value that is no boolean. */
void yl_flag_number(lua_State *L, Binding *b, const char *call, const char *key);

/* Raises for an argument that a call has under two names. */
int yl_raise_both_names(lua_State *L, Binding *b, yoke_status code, const char *call,
                        const char *first, const char *second);

/* Pushes the values of the table at `index`, an absolute index, in the order of `names`: nil for a missing value.
 * Raises for another key, showing `signature`, and for an argument with two names. */
void yl_push_named(lua_State *L, Binding *b, int index, const char *call, const char *const *names,
                   int count, const char *signature);

/* Returns what to write for a name of PyTorch that `place`, a module or "tensor", does not have; NULL for other names.
 * */
const char *yl_foreign_name(const char *place, const char *name);

/* Adds core.foreign_name(place, name) and core.other_name(call, key, names), for the parts in plain Lua. */
void yl_open_other_names(lua_State *L, Binding *b);

#endif /* YOKE_LUA_RUNTIME_OTHER_NAMES_H */
