/* op_call.h: op in the binding's view, and the arguments of its call. */
#ifndef YOKE_LUA_OP_CALL_H
#define YOKE_LUA_OP_CALL_H

#include "bindings/lua/src/runtime/other_names.h"
#include "bindings/lua/src/values/convert.h"

enum { kMaxArgs = 16, kMaxResults = 4 };
enum { kMaxSeenNames = 16 };
enum { kListRoom = 32 }; /* tensors of lists with space on the C stack */

/* Op in the binding's view: the first upvalue of its Lua function. A further form of a call is an OpBinding too, under
 * the name of the call (forms.h). */
typedef struct OpBinding {
    Binding *binding;
    const yoke_op *op;
    const char *name, *signature; /* of the call */
    const char *names[kMaxArgs];  /* of the arguments, as scripts know them */
    uint8_t
        at[kMaxArgs]; /* their places in the op; behind its own if the binding alone reads them */
    int32_t arg_count;
    int32_t required, places; /* arguments without a default; arguments allowed by place */
    const struct Form *forms; /* further forms of the call, and their bindings */
    struct OpBinding *form_bindings;
    int8_t form_count;
    int8_t is_form;
    int8_t gives_truth;      /* the result is a boolean of Lua */
    int8_t takes_boolean;    /* for an operand */
    int8_t has_lists;        /* takes lists of tensors */
    int8_t creates;          /* result is new: takes requires_grad too */
    int16_t spread;          /* list of ints that may be spread; -1: none */
    uint16_t takes_tensor;   /* a bit for each argument for which a tensor serves */
    uint8_t types[kMaxArgs]; /* ArgType of arg_type.h */
    int seen_count;          /* other names that calls of the op have had */
    OtherName seen[kMaxSeenNames];
} OpBinding;

typedef struct Call {
    yoke_arg args[kMaxArgs];
    Lists lists;
    yoke_tensor *room[kListRoom]; /* for lists of tensors, in sequence */
    int32_t count;
    int32_t requires_grad;
} Call;

/* Returns whether the last of `given` arguments is the table of keyword arguments. An empty table counts as such a
 * table, except in the place of a list. */
static inline int yl_has_keywords(lua_State *L, const OpBinding *op, int given)
{
    if (!given || lua_type(L, given) != LUA_TTABLE) return 0;
    const int type = given <= op->arg_count ? op->types[given - 1] : kArgTypeCount;
    if (given <= op->required) return type != kTensors && yl_is_keywords(L, given);
    if (type == kInts || type == kOptionalInts || type == kOptionalFloats)
        return yl_is_keywords(L, given);
    return lua_rawlen(L, given) == 0;
}

/* Returns the tensor with possible views among the results, or NULL. */
static inline yoke_tensor *yl_source_of(const Call *call)
{
    return call->count && call->args[0].kind == YOKE_ARG_TENSOR ? call->args[0].v.tensor : NULL;
}

/* Returns the place of the argument with this name or other name; -1 for an unknown name. */
int yl_place_of_key(OpBinding *op, const char *key);

/* Finds space for all lists of tensors in the arguments: the C stack, or a userdata if that is too small. Called
 * before any tensor is read, since an allocation may run finalizers. */
void yl_find_room(lua_State *L, int given, Call *call);
/* Raises if there are more arguments than the op takes, spread ints aside. */
void yl_check_count(lua_State *L, const OpBinding *op, int positional);
/* Reads the `given` arguments on the stack into `call`; with `keywords`, the last is the table of keyword arguments. */
void yl_read_arguments(lua_State *L, OpBinding *op, int given, int keywords, Call *call);

/* Enclose a call that may find relief. References keep the call's tensors alive meanwhile, since relief may close
 * them. */
lua_State *yl_begin_call_relief(lua_State *L, const Call *call);
void yl_end_call_relief(lua_State *outer, const Call *call);

#endif /* YOKE_LUA_OP_CALL_H */
