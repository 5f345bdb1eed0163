/*
 * convert.h: Lua values to the values of the C API, driven by the types that the op table states.
 *
 * A Target says whose argument is converted, so that an error can name it: "softmax: argument 'axis' is a
 * string; it takes an int".
 */
#ifndef YOKE_LUA_CONVERT_H
#define YOKE_LUA_CONVERT_H

#include "bindings/lua/src/binding.h"

typedef enum ArgType {
    kTensor, /* up to kOperand: a tensor serves */
    kOptionalTensor,
    kOperand,
    kTensors,
    kInt,
    kOptionalInt,
    kInts,
    kOptionalInts,
    kFloat,
    kBool,
    kDtype,
    kScalar,
    kOptionalScalar,
    kString,
    kDevice,
    kArgTypeCount
} ArgType;

typedef struct Target {
    Binding *binding;
    const char *call;
    const char *name;
} Target;

/* Room for the items of all lists in one call, so that nothing is allocated while handles are held. Lists
 * of ints are shapes and axes, so there is more of it than any call that can succeed needs. */
#define YL_MAX_INTS (4 * YOKE_MAX_NDIM)
typedef struct Lists {
    int64_t items[YL_MAX_INTS];
    int used;
    yoke_tensor **tensors; /* where the next list of tensors goes, */
    size_t room;           /* and how many find room there */
} Lists;

/* The type that the op table spells `text`; kArgTypeCount for one that this binding does not know. */
ArgType yl_arg_type(const char *text);

/* Converts the value at `index`; nil is NONE. Raises for a value that does not serve; allocates nothing
 * otherwise. Lists go to `lists`; one that outgrew its room since that was sized is an error. */
yoke_arg yl_convert(lua_State *L, Target target, ArgType type, int index, Lists *lists);

/* The string at `index`, borrowed; raises for one with a NUL, of which C would read the beginning alone. */
const char *yl_need_text(lua_State *L, Target target, int index);

/* The value at `index` as errors say it: a string with each NUL as \0. May push. */
const char *yl_show(lua_State *L, int index);

/* A key of options to compare with names, or what an error says in its place; pushes only for what is no
 * name: a string with a NUL. */
const char *yl_key(lua_State *L, int index);

/* The live tensor at `index`. */
yoke_tensor *yl_need_tensor(lua_State *L, Target target, int index);

/* The device that a Device, a spec or an index in the current kind names; borrowed; NULL for nil. */
yoke_device *yl_need_device(lua_State *L, Target target, int index);

/* The open stream at `index`; borrowed. */
yoke_stream *yl_need_stream(lua_State *L, Target target, int index);

/* The dtype of a name; YOKE_NONE for nil. */
yoke_dtype yl_need_dtype(lua_State *L, Target target, int index);

/* Whether the value at `index` is a table of keyword arguments: it has a string key and no list part. */
int yl_is_keywords(lua_State *L, int index);

/* Raises "call: argument 'name' is <what it is>; it takes <wanted>". */
int yl_wrong_type(lua_State *L, Target target, int index, const char *wanted);

/* A field of a device that select.c knows; 0 if it knows none of that name. */
int yl_push_device_field(lua_State *L, Binding *b, yoke_device *device, const char *name);

#endif /* YOKE_LUA_CONVERT_H */
