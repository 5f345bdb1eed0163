/*
 * arguments.h: Lua values as plain values of C, and errors for invalid values.
 *
 * A Target has the call and the name of the argument for the error: "softmax: argument 'axis' is a string; it takes
 * an int".
 */
#ifndef YOKE_LUA_RUNTIME_ARGUMENTS_H
#define YOKE_LUA_RUNTIME_ARGUMENTS_H

#include "bindings/lua/src/runtime/error.h"

typedef struct Target {
    Binding *binding;
    const char *call;
    const char *name;
} Target;

/* Raises "call: argument 'name' is <its kind>; it takes <wanted>". For the argument 1 named 'self', the error says that
 * the call is missing its ':'. */
int yl_wrong_type(lua_State *L, Target target, int index, const char *wanted);

/* Returns the userdata of a class at 1, the object of a method. Raises for any other value, as for a missing ':'.
 * `wanted` is the object with its article, "a scope". */
void *yl_need_object(lua_State *L, Binding *b, const char *class_name, const char *call,
                     const char *wanted);

/* Raises unless the call has `least` to `most` arguments. */
void yl_arg_count(lua_State *L, Binding *b, const char *call, int least, int most);

/* Returns the string at `index`, borrowed. Raises for a string with a NUL, because C would read only its beginning. */
const char *yl_need_text(lua_State *L, Target target, int index);
const char *yl_string_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
/* Return an int, a number, a boolean at `index`; raise for any other value. */
int64_t yl_int_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
double yl_number_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
int yl_bool_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);

/* Returns the value at `index` as errors say it: a string with each NUL as \0. May push. */
const char *yl_show(lua_State *L, int index);

/* Raises for a list, at an absolute index, with keywords as well: zeros({2, 3, dtype = "int32"}). It looks only at
 * the key after the last item, so there is no walk. */
void yl_refuse_keys(lua_State *L, Target target, int index);

/* Returns a key of options for comparison with names, or a text for errors. Pushes only for a string with a NUL,
 * which is no name. */
const char *yl_key(lua_State *L, int index);
/* Returns the place of `key` among `names`; `count` if `key` is missing. */
int yl_find_name(const char *key, const char *const *names, int count);
/* Raises, showing `signature`, unless every key of the table at `index` is one of `names`. */
void yl_check_keywords(lua_State *L, Binding *b, int index, const char *call,
                       const char *const *names, int count, const char *signature);

/* Raises for the argument `name`, which stood in a place and is known by name alone. */
int yl_raise_place(lua_State *L, Binding *b, const char *call, const char *name,
                   const char *signature);

/* Returns whether the value at `index` is a table of keyword arguments: it has a string key and no list part. */
int yl_is_keywords(lua_State *L, int index);

#endif /* YOKE_LUA_RUNTIME_ARGUMENTS_H */
