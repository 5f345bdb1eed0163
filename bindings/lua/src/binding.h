/*
 * binding.h: what the files of the Lua binding share.
 *
 * The binding is C99 over the public headers alone. Each lua_State that requires "yoke" has one Binding,
 * a userdata in its registry; every function of the module carries its address as first upvalue. Nothing
 * but the log (log.c) is shared between states.
 *
 * Rules that keep it safe where an error is a longjmp:
 *   - No memory, reference or mode is held by C across a call that may raise. Buffers are userdata.
 *   - A result's userdata is pushed, empty, before the call that fills it.
 *   - Handles of arguments are read after the last allocation, because an allocation may run the script's
 *     finalizers, and those may close tensors.
 */
#ifndef YOKE_LUA_BINDING_H
#define YOKE_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "yoke/yoke.h"

#define YL_MAX_ARGS 16
#define YL_MAX_RESULTS 4

typedef struct Binding Binding;
typedef struct Scope Scope;

/* One op as the binding sees it: the upvalue of its Lua function. */
typedef struct OpBinding {
    Binding *binding;
    const yoke_op *op;
    int32_t required;           /* arguments without a default */
    int8_t has_lists;           /* it takes lists of tensors */
    int8_t creates;             /* its result is new: it takes requires_grad too */
    int16_t spread;             /* the list of ints that may stand one by one, or none such: -1 */
    uint8_t types[YL_MAX_ARGS]; /* ArgType of convert.h */
} OpBinding;

struct Binding {
    int tensor_metatable_ref;
    int device_cache_ref; /* table: address of a device -> its userdata */
    int error_metatable_ref;
    Scope *scopes;         /* the grad scopes that are open in any coroutine, newest first */
    int64_t fresh_bytes;   /* allocated since the collector was last stepped */
    int64_t step_bytes;    /* at this many, it is stepped again */
    int32_t fresh_tensors; /* made since the collector was last told of their host memory */
    int log_callback_ref;
    int32_t op_count;
    OpBinding ops[];
};

/* The Binding of the running function. */
static inline Binding *yl_binding(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* ---- error.c: error objects {code, message, device, call} ---------------------------------------- */

/* Pushes the last failure of this thread as an error object. */
void yl_push_last_error(lua_State *L, Binding *b);
/* Raises it. */
int yl_raise_last(lua_State *L, Binding *b);
/* Raises "there is no argument 'dim'; did you mean 'axis'? sum(x: tensor, …) -> tensor" for a keyword that is none of
 * `names`. */
int yl_raise_keyword(lua_State *L, Binding *b, const char *call, const char *key,
                     const char *const *names, int count, const char *signature);
/* "; did you mean 'axis'?", pushed, or "" where none of `names` is near to `key`. */
const char *yl_meant(lua_State *L, const char *key, const char *const *names, int count);
/* Raises a misuse; `format` as in lua_pushfstring. `call` names the function as scripts spell it. */
int yl_raise(lua_State *L, Binding *b, yoke_status code, const char *call, const char *format, ...);
/* Pushes nil and the last failure, for functions that deal with the world. Returns 2. */
int yl_nil_error(lua_State *L, Binding *b);
void yl_open_error(lua_State *L, Binding *b);

/* Raises unless `status` is success. */
static inline void yl_check(lua_State *L, Binding *b, yoke_status status)
{
    if (status) yl_raise_last(L, b);
}

/* ---- tensor.c: the userdata ------------------------------------------------------------------------ */

/* A tensor as Lua holds it. The owner tells it from any other userdata, of Yoke in another state too. */
typedef struct TensorBox {
    yoke_tensor *tensor; /* NULL before it is filled and after close() */
    const Binding *owner;
} TensorBox;

/* Pushes an empty tensor; the caller fills it. */
yoke_tensor **yl_new_tensor(lua_State *L, Binding *b);

/* The place of the tensor at `index`, or NULL for any other value. */
static inline yoke_tensor **yl_test_tensor(lua_State *L, const Binding *b, int index)
{
    /* Cheaper than a look at the metatable; the length says that there is an owner to look at. */
    TensorBox *box = lua_touserdata(L, index);
    if (!box || lua_rawlen(L, index) != sizeof *box || box->owner != b) return NULL;
    return &box->tensor;
}

/* The live tensor at `index`; raises, naming the call and the argument, for anything else. */
yoke_tensor *yl_tensor_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
void yl_open_tensor(lua_State *L, Binding *b);

/* ---- pressure.c: Lua's collector learns of device memory -------------------------------------------- */

void yl_step_collector(lua_State *L, Binding *b, yoke_tensor *made);

/* Tells the collector of host memory behind tensors, so many of them at a time. */
enum { YL_TENSORS_A_TELLING = 128 };
void yl_tell_collector(lua_State *L, Binding *b);

/* Counts a tensor that was just made, and steps the collector when enough have been. A tensor costs more
 * than its elements; kOverhead stands for the rest. A view of `source` (which may be NULL) costs no more
 * than that; whether it is one is looked up only where it matters. */
static inline void yl_count(lua_State *L, Binding *b, yoke_tensor *made, yoke_tensor *source)
{
    enum { kOverhead = 512, kWorthALook = 64 * 1024 };
    int64_t bytes = yoke_tensor_nbytes(made);
    if (bytes > kWorthALook && source &&
        yoke_tensor_storage_id(made) == yoke_tensor_storage_id(source))
        bytes = 0;
    b->fresh_bytes += bytes + kOverhead;
    if (b->fresh_bytes >= b->step_bytes) yl_step_collector(L, b, made);
    if (++b->fresh_tensors >= YL_TENSORS_A_TELLING) yl_tell_collector(L, b);
}

/* ---- scope.c: modes that belong to a coroutine -------------------------------------------------------- */

/* What yl_enter found in force, for yl_leave to put back. */
typedef struct Modes {
    int32_t grad;     /* -1: left as it was */
    int32_t autocast; /* 1: `region` is put back */
    yoke_autocast *region;
    Scope *
        streams; /* the scopes whose streams are in force, each with what it replaced; NULL: none */
    yoke_device *device; /* the thread's own, where there are streams */
} Modes;

/* Puts the running coroutine's grad mode, autocast region and streams in force. */
Modes yl_enter_scopes(lua_State *L, const Binding *b);
static inline Modes yl_enter(lua_State *L, const Binding *b)
{
    const Modes none = {-1, 0, NULL, NULL, NULL};
    return b->scopes ? yl_enter_scopes(L, b) : none;
}
void yl_leave_streams(Modes outer);
static inline void yl_leave(Modes outer)
{
    if (outer.streams) yl_leave_streams(outer);
    if (outer.grad >= 0) yoke_set_grad_enabled(outer.grad);
    if (outer.autocast) yoke_autocast_swap(outer.region);
}
void yl_open_scope(lua_State *L, Binding *b);
void yl_close_scopes(Binding *b); /* the state closes, and no call comes any more */

/* Runs `call`, an expression that gives a yoke_status, in the coroutine's mode. On a shortage of memory it
 * collects garbage and tries once more; `kept` (a tensor or NULL) outlives the collection whatever the
 * script's finalizers do. Raises on failure. */
#define YL_CALL(L, b, kept, call)                          \
    do {                                                   \
        Modes outer_ = yl_enter(L, b);                     \
        yoke_status status_ = (call);                      \
        yl_leave(outer_);                                  \
        if (status_ == YOKE_E_OOM) {                       \
            yoke_tensor *kept_ = yoke_tensor_retain(kept); \
            lua_gc(L, LUA_GCCOLLECT, 0);                   \
            outer_ = yl_enter(L, b);                       \
            status_ = (call);                              \
            yl_leave(outer_);                              \
            yoke_tensor_release(kept_);                    \
        }                                                  \
        yl_check(L, b, status_);                           \
    } while (0)

/* ---- The other rooms; each adds its functions to the module's table on top of the stack ------------- */

typedef struct YlField {
    const char *name;
    void (*push)(lua_State *L, Binding *b, yoke_tensor *tensor);
} YlField;

/* Sets functions, each with the Binding as its upvalue, in the table on top of the stack. */
void yl_set_functions(lua_State *L, Binding *b, const luaL_Reg *functions);
/* A class of userdata: its metatable, with methods, and `close` for __gc and __close. */
void yl_open_class(lua_State *L, Binding *b, const char *name, lua_CFunction close,
                   const luaL_Reg *methods);

/* Scripts get the class's name in place of the metatable on top of the stack, so that they cannot break what C
 * relies on. */
void yl_protect(lua_State *L, const char *name);

/* Raises unless the call has `least` to `most` arguments. */
void yl_arg_count(lua_State *L, Binding *b, const char *call, int least, int most);
/* A string without NUL at `index`; raises for anything else. */
const char *yl_string_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
/* An int, a number, a boolean at `index`; raise for anything else. */
int64_t yl_int_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
double yl_number_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);
int yl_bool_arg(lua_State *L, Binding *b, int index, const char *call, const char *name);

void yl_push_device(lua_State *L, Binding *b, yoke_device *device);
void yl_open_device(lua_State *L, Binding *b);
void yl_open_stream(lua_State *L, Binding *b);
void yl_open_memory(lua_State *L, Binding *b);
void yl_open_runtime(lua_State *L, Binding *b);
void yl_open_ops(lua_State *L, Binding *b);
void yl_open_fields(lua_State *L, Binding *b);
void yl_open_index(lua_State *L, Binding *b);
void yl_open_list(lua_State *L, Binding *b);
void yl_open_autograd(lua_State *L, Binding *b);
void yl_open_optim(lua_State *L, Binding *b);
void yl_open_training(lua_State *L, Binding *b);
void yl_open_graph(lua_State *L, Binding *b);
void yl_open_doctor(lua_State *L, Binding *b);
void yl_open_inventory(lua_State *L, Binding *b);
void yl_open_select(lua_State *L, Binding *b);
void yl_open_log(lua_State *L, Binding *b);
void yl_close_log(Binding *b);

/* Pushes a card of an inventory as a table; what is not known is absent. */
void yl_push_card(lua_State *L, const yoke_card_info *card);
/* A field of the table on top; one that is not known (below 0, NaN) is left out. */
void yl_set_int(lua_State *L, const char *key, int64_t value);
void yl_set_real(lua_State *L, const char *key, double value);

/* The live optimizer (of yoke.core) at `index`; raises for anything else. */
yoke_optimizer *yl_optimizer_arg(lua_State *L, Binding *b, int index, const char *call,
                                 const char *name);

/* Indexing with one integer, for x[i]; pushes the view. */
void yl_push_item(lua_State *L, Binding *b, int tensor, int64_t position);
/* x[key] for the tensor at 1 and any other key at 2, pushed; x[key] = value with the value at 3. */
void yl_push_part(lua_State *L, Binding *b);
void yl_assign_part(lua_State *L, Binding *b);

#endif /* YOKE_LUA_BINDING_H */
