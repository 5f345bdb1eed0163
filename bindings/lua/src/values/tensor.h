/* tensor.h: what Lua holds of a tensor, and how results are made. */
#ifndef YOKE_LUA_VALUES_TENSOR_H
#define YOKE_LUA_VALUES_TENSOR_H

#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/runtime/scope.h"

/* This layer's record of a state. */
typedef struct TensorState {
    Binding binding; /* first, so both have the same address */
    int metatable_ref;
    int32_t fresh_tensors; /* made since the collector last counted their host memory */
    int64_t fresh_bytes;   /* allocated since the collector was last stepped */
    int64_t step_bytes;    /* limit for the next step */
} TensorState;

static inline TensorState *yl_tensor_state(Binding *b)
{
    return (TensorState *)b;
}

/* Lua's userdata of a tensor. The owner distinguishes it from any other userdata, also of Yoke in another state. */
typedef struct TensorBox {
    yoke_tensor *tensor; /* NULL before the fill and after close() */
    const Binding *owner;
} TensorBox;

/* Pushes an empty tensor, filled by the caller. */
yoke_tensor **yl_new_tensor(lua_State *L, Binding *b);
/* Pushes an empty tensor with the class at `class`, an upvalue, for the busiest functions. */
static inline yoke_tensor **yl_new_tensor_of(lua_State *L, Binding *b, int class)
{
    TensorBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->tensor = NULL;
    box->owner = b;
    lua_pushvalue(L, class);
    lua_setmetatable(L, -2);
    return &box->tensor;
}

/* Returns the place of the tensor at `index`, or NULL for any other value. */
static inline yoke_tensor **yl_test_tensor(lua_State *L, const Binding *b, int index)
{
    /* Cheaper than a look at the metatable; the length says that there is an owner to look at. */
    TensorBox *box = lua_touserdata(L, index);
    if (!box || lua_rawlen(L, index) != sizeof *box || box->owner != b) return NULL;
    return &box->tensor;
}

/* Return the live tensor at `index`; raise, naming the call and the argument, for any other value. */
yoke_tensor *yl_need_tensor(lua_State *L, Target target, int index);
yoke_tensor *yl_tensor_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);

/* Field of a tensor, x.shape: light userdata in the table of methods. */
typedef struct YlField {
    const char *name;
    void (*push)(lua_State *L, Binding *b, yoke_tensor *tensor);
} YlField;

/* Adds methods to all tensors; the module's table is on top of the stack. */
void yl_set_tensor_methods(lua_State *L, Binding *b, const luaL_Reg *methods);
/* Adds metamethods, whose second upvalue is the table of methods. */
void yl_set_tensor_events(lua_State *L, Binding *b, const luaL_Reg *events);

/* Makes the class of tensors, with close() alone; leaves add the other methods. */
void yl_open_tensor(lua_State *L, Binding *b);

/* Runs `call`, an expression with a yoke_status, in the coroutine's mode. If memory is short, tries once more with
 * relief; `kept` (a tensor or NULL) stays alive meanwhile, whatever the script's finalizers do. Raises on failure. */
#define YL_CALL(L, b, kept, call)                          \
    do {                                                   \
        Modes outer_ = yl_enter(L, b);                     \
        yoke_status status_ = (call);                      \
        yl_leave(outer_);                                  \
        if (status_ == YOKE_E_OOM) {                       \
            yoke_tensor *kept_ = yoke_tensor_retain(kept); \
            lua_State *relief_ = yl_begin_relief(L);       \
            outer_ = yl_enter(L, b);                       \
            status_ = (call);                              \
            yl_leave(outer_);                              \
            yl_end_relief(relief_);                        \
            yoke_tensor_release(kept_);                    \
        }                                                  \
        yl_check(L, b, status_);                           \
    } while (0)

#endif /* YOKE_LUA_VALUES_TENSOR_H */
