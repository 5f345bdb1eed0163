/* Between tensors and Lua's own values: yoke.tensor(nested tables), x:tolist(), and bytes in strings. */
#include <math.h>
#include <string.h>

#include "bindings/lua/src/dtypes.inc"
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/other_names.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/pressure.h"

/* Kind of the leaves of nested tables, in rising order: the highest kind holds all leaves. */
enum LeafKind { kNoLeaf, kBoolLeaf, kIntLeaf, kFloatLeaf };

/* Nested tables on their way into a buffer. */
typedef struct Nest {
    Binding *binding;
    int64_t shape[YOKE_MAX_NDIM];
    int ndim;
    int kind; /* LeafKind */
    char *next;
    yoke_dtype dtype;        /* requested dtype; YOKE_NONE: the numbers decide */
    double lowest, past_end; /* exclusive lower and upper bound of an integer dtype */
} Nest;

/* Returns the bits of an integer dtype's largest number, negative for a signed dtype; 0 for other dtypes. */
static int integer_bits(yoke_dtype dtype)
{
    switch (dtype) {
#define YL_BITS(value, bits, is_signed) \
    case value:                         \
        return is_signed ? -(bits - 1) : bits;
        YL_INTEGER_DTYPES(YL_BITS)
#undef YL_BITS
        default:
            return 0;
    }
}

/* Sets bounds: numbers strictly between them can be truncated to the dtype. */
static void set_range(Nest *nest, yoke_dtype dtype)
{
    const int bits = integer_bits(dtype);
    nest->dtype = dtype;
    nest->past_end = ldexp(1.0, bits < 0 ? -bits : bits);
    nest->lowest = bits < 0 ? -nest->past_end - 1.0 : -1.0;
    if (bits == -63) nest->lowest = -9223372036854777856.0; /* the next double below -2^63 */
}

/* Raises for the number on top of the stack if the dtype is of integers and cannot hold it. */
static void need_range(lua_State *L, const Nest *nest)
{
    if (!integer_bits(nest->dtype)) return;
    if (nest->dtype == YOKE_I64 && lua_isinteger(L, -1)) return;
    const double value = lua_tonumber(L, -1);
    if (value > nest->lowest && value < nest->past_end) return;
    yl_raise(L, nest->binding, YOKE_E_VALUE, "tensor",
             "argument 'data' holds %s; its numbers must be in the range of %s",
             luaL_tolstring(L, -1, NULL), yoke_dtype_name(nest->dtype));
}

static int ragged(lua_State *L, Nest *nest, int axis, int64_t length)
{
    return yl_raise(L, nest->binding, YOKE_E_VALUE, "tensor",
                    "argument 'data' is ragged: lists along axis %d must have %I items, not %I",
                    axis, (lua_Integer)nest->shape[axis], (lua_Integer)length);
}

/* Finds the shape along the first items of the value on top of the stack. Raises if the tables are nested too deep. */
static void measure(lua_State *L, Nest *nest)
{
    const int top = lua_gettop(L);
    luaL_checkstack(L, YOKE_MAX_NDIM + 4, "too deep");
    lua_pushvalue(L, -1);
    while (lua_type(L, -1) == LUA_TTABLE) {
        if (nest->ndim == YOKE_MAX_NDIM)
            yl_raise(L, nest->binding, YOKE_E_VALUE, "tensor",
                     "argument 'data' is nested deeper than %d tables; it must have fewer levels",
                     YOKE_MAX_NDIM);
        nest->shape[nest->ndim++] = (int64_t)lua_rawlen(L, -1);
        lua_rawgeti(L, -1, 1);
    }
    /* An empty list ends the shape; any other value must be a leaf, checked by look(). */
    lua_settop(L, top);
}

/* Checks the value on top of the stack, at depth `axis`, and finds the kind of its leaves. Raises for ragged tables,
 * other leaves, and numbers beyond the dtype. */
static void look(lua_State *L, Nest *nest, int axis)
{
    const int type = lua_type(L, -1);
    if (axis < nest->ndim) {
        const int64_t length = type == LUA_TTABLE ? (int64_t)lua_rawlen(L, -1) : -1;
        if (length < 0)
            yl_raise(L, nest->binding, YOKE_E_VALUE, "tensor",
                     "argument 'data' is ragged: all items along axis %d must be lists, not a %s",
                     axis, luaL_typename(L, -1));
        if (length != nest->shape[axis]) ragged(L, nest, axis, length);
        for (int64_t i = 0; i < length; ++i, lua_pop(L, 1)) {
            lua_rawgeti(L, -1, i + 1);
            look(L, nest, axis + 1);
        }
        return;
    }
    const int kind = type == LUA_TBOOLEAN   ? kBoolLeaf
                     : type != LUA_TNUMBER  ? kNoLeaf
                     : lua_isinteger(L, -1) ? kIntLeaf
                                            : kFloatLeaf;
    if (kind == kNoLeaf)
        yl_raise(L, nest->binding, type == LUA_TTABLE ? YOKE_E_VALUE : YOKE_E_TYPE, "tensor",
                 type == LUA_TTABLE ? "argument 'data' is ragged: a number is needed, not a %s"
                                    : "argument 'data' holds a %s; it takes numbers and booleans",
                 luaL_typename(L, -1));
    if (type == LUA_TNUMBER) need_range(L, nest);
    if (kind > nest->kind) nest->kind = kind;
}

static void need_type(lua_State *L, Nest *nest, int wanted)
{
    if (!wanted)
        yl_raise(L, nest->binding, YOKE_E_TYPE, "tensor",
                 "argument 'data' changed during the call: an item became a %s; it must not change",
                 luaL_typename(L, -1));
}

/* Writes the leaves, row-major, as `kind` asks. look() has checked all, but the later allocation of the buffer may
 * have run finalizers that changed the tables. */
static void write_leaves(lua_State *L, Nest *nest, int axis)
{
    const int type = lua_type(L, -1), is_bool = type == LUA_TBOOLEAN;
    if (axis < nest->ndim) {
        need_type(L, nest, type == LUA_TTABLE);
        for (int64_t i = 0; i < nest->shape[axis]; ++i, lua_pop(L, 1)) {
            lua_rawgeti(L, -1, i + 1);
            write_leaves(L, nest, axis + 1);
        }
        return;
    }
    need_type(L, nest, is_bool || type == LUA_TNUMBER);
    if (nest->kind == kBoolLeaf) {
        *nest->next++ = (char)lua_toboolean(L, -1);
    } else if (nest->kind == kIntLeaf) {
        const int64_t value = is_bool ? lua_toboolean(L, -1) : lua_tointeger(L, -1);
        memcpy(nest->next, &value, sizeof value);
        nest->next += sizeof value;
    } else {
        const double value = is_bool ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
        memcpy(nest->next, &value, sizeof value);
        nest->next += sizeof value;
    }
}

/* Returns the dtype in which a buffer holds leaves. */
static yoke_dtype held_dtype(int kind)
{
    if (kind == kBoolLeaf) return YOKE_BOOL;
    return kind == kIntLeaf ? YOKE_I64 : YOKE_F64;
}

/* Replaces the tensor in `box` by a tensor of another dtype. */
static void cast_in_place(lua_State *L, Binding *b, yoke_tensor **box, yoke_dtype dtype)
{
    yoke_tensor **staged = yl_new_tensor(L, b);
    *staged = *box;
    *box = NULL;
    YL_CALL(L, b, NULL, yoke_tensor_to(*staged, NULL, dtype, box));
    yoke_tensor *done = *staged;
    *staged = NULL;
    yoke_tensor_release(done);
}

/* Makes a tensor of the number or the nested tables at `index`, in `box`, the userdata on top of the stack. */
static void from_nested(lua_State *L, Binding *b, yoke_tensor **box, int index, yoke_dtype dtype,
                        yoke_device *device)
{
    Nest nest = {.binding = b};
    const Target data_argument = {b, "tensor", "data"};
    if (lua_istable(L, index)) yl_refuse_keys(L, data_argument, lua_absindex(L, index));
    set_range(&nest, dtype);
    lua_pushvalue(L, index);
    measure(L, &nest);
    look(L, &nest, 0);
    int64_t count = 1;
    for (int i = 0; i < nest.ndim; ++i)
        count *= nest.shape[i];                       /* all items are in memory: no overflow */
    if (nest.kind == kNoLeaf) nest.kind = kFloatLeaf; /* there are no leaves */
    const yoke_dtype held = held_dtype(nest.kind);
    const int64_t bytes = count * yoke_dtype_size(held);
    nest.next = lua_newuserdatauv(L, (size_t)bytes + 1, 0);
    const void *data = nest.next;
    lua_pushvalue(L, -2);
    write_leaves(L, &nest, 0);
    if (dtype == YOKE_NONE) dtype = held == YOKE_F64 ? YOKE_F32 : held;
    YL_CALL(L, b, NULL,
            yoke_tensor_from_data(data, bytes, nest.shape, nest.ndim, held, device, box));
    if (dtype != held) cast_in_place(L, b, box, dtype);
}

/* Copies the tensor at 1 without its history into `box`, by default with the same dtype and place. */
static void from_tensor(lua_State *L, Binding *b, yoke_tensor **box, yoke_dtype dtype,
                        yoke_device *device)
{
    yoke_tensor **detached = yl_new_tensor(L, b), **moved = yl_new_tensor(L, b);
    yoke_tensor *source = yl_tensor_arg(L, b, 1, "tensor", "data");
    YL_CALL(L, b, source, yoke_tensor_detach(source, detached));
    YL_CALL(L, b, NULL, yoke_tensor_to(*detached, device, dtype, moved));
    /* Not `source`: a finalizer may have closed it by now. */
    const int is_copy = !yoke_shares_memory(*moved, *detached);
    if (is_copy) {
        *box = *moved;
        *moved = NULL;
    } else {
        YL_CALL(L, b, NULL, yoke_clone(*moved, box));
    }
}

/* Puts the options of yoke.tensor at 2 to 4: a table at 2 gives them by name. */
static void spread_options(lua_State *L, Binding *b)
{
    static const char *const names[] = {"dtype", "device", "requires_grad"};
    if (lua_gettop(L) == 2 && lua_type(L, 2) == LUA_TTABLE) {
        yl_push_named(L, b, 2, "tensor", names, 3, "tensor(data, dtype, device, requires_grad)");
        lua_remove(L, 2);
    }
    lua_settop(L, 4);
}

/* Implements yoke.tensor(data, dtype, device, requires_grad), the last three also by name. */
static int make_tensor(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target dtype = {b, "tensor", "dtype"}, device = {b, "tensor", "device"};
    yl_arg_count(L, b, "tensor", 1, 4);
    spread_options(L, b);
    const yoke_dtype kind = yl_need_dtype(L, dtype, 2);
    yoke_device *where = yl_need_device(L, device, 3);
    const int requires_grad = lua_isnil(L, 4) ? 0 : yl_bool_arg(L, b, 4, "tensor", "requires_grad");
    yoke_tensor **box = yl_new_tensor(L, b);
    if (yl_test_tensor(L, b, 1))
        from_tensor(L, b, box, kind, where);
    else
        from_nested(L, b, box, 1, kind, where);
    lua_settop(L, 5);
    if (requires_grad) yl_check(L, b, yoke_tensor_set_requires_grad(*box, 1));
    yl_count(L, b, *box, NULL);
    return 1;
}

/* ---- From tensors ------------------------------------------------------------------------------------ */

/* Pushes a buffer with the elements of the tensor at 1, converted to `dtype`. */
static const char *read_elements(lua_State *L, Binding *b, const char *call, yoke_dtype dtype,
                                 int64_t *bytes)
{
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, call, "self");
    YL_CALL(L, b, tensor, yoke_tensor_detach(tensor, box));
    yoke_tensor **converted = yl_new_tensor(L, b);
    YL_CALL(L, b, NULL, yoke_tensor_to(*box, NULL, dtype, converted));
    *bytes = yoke_tensor_nbytes(*converted);
    char *buffer = lua_newuserdatauv(L, (size_t)*bytes + 1, 0);
    YL_CALL(L, b, NULL, yoke_tensor_copy_to_host(*converted, buffer, *bytes));
    return buffer;
}

/* Returns the dtype of a dtype's elements in Lua: f64, i64 or bool. */
static yoke_dtype lua_dtype(yoke_dtype dtype)
{
    if (dtype == YOKE_BOOL) return YOKE_BOOL;
    return integer_bits(dtype) ? YOKE_I64 : YOKE_F64;
}

static void push_element(lua_State *L, yoke_dtype held, const char *at)
{
    double f;
    int64_t i;
    if (held == YOKE_BOOL) {
        lua_pushboolean(L, *at);
    } else if (held == YOKE_I64) {
        memcpy(&i, at, sizeof i);
        lua_pushinteger(L, i);
    } else {
        memcpy(&f, at, sizeof f);
        lua_pushnumber(L, f);
    }
}

static const char *push_nested(lua_State *L, yoke_dtype held, const char *at, const int64_t *shape,
                               int64_t ndim)
{
    if (ndim == 0) {
        push_element(L, held, at);
        return at + yoke_dtype_size(held);
    }
    lua_createtable(L, (int)(shape[0] < INT32_MAX ? shape[0] : 0), 0);
    for (int64_t i = 0; i < shape[0]; ++i) {
        at = push_nested(L, held, at, shape + 1, ndim - 1);
        lua_rawseti(L, -2, i + 1);
    }
    return at;
}

static int tolist(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "tolist", "self");
    const yoke_dtype held = lua_dtype(yoke_tensor_dtype(tensor));
    const int64_t ndim = yoke_tensor_ndim(tensor);
    int64_t shape[YOKE_MAX_NDIM + 1] = {0}, bytes;
    for (int64_t i = 0; i < ndim; ++i) shape[i] = yoke_tensor_shape(tensor)[i];
    const char *data = read_elements(L, b, "tolist", held, &bytes);
    luaL_checkstack(L, YOKE_MAX_NDIM + 4, "too deep");
    push_nested(L, held, data, shape, ndim);
    return 1;
}

static int item(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "item", "self");
    const yoke_dtype dtype = yoke_tensor_dtype(tensor);
    int64_t i = 0;
    double f = 0;
    if (lua_dtype(dtype) == YOKE_F64) {
        YL_CALL(L, b, tensor, yoke_tensor_item_f64(tensor, &f));
        lua_pushnumber(L, f);
        return 1;
    }
    YL_CALL(L, b, tensor, yoke_tensor_item_i64(tensor, &i));
    if (dtype == YOKE_BOOL)
        lua_pushboolean(L, i != 0);
    else
        lua_pushinteger(L, i);
    return 1;
}

/* ---- Bytes ------------------------------------------------------------------------------------------- */

static int tobytes(lua_State *L)
{
    lua_settop(L, 1); /* a result must not become 'self' */
    int64_t bytes;
    const char *data = read_elements(L, yl_binding(L), "tobytes", YOKE_NONE, &bytes);
    lua_pushlstring(L, data, (size_t)bytes);
    return 1;
}

/* Returns a string of any bytes at `index`. */
static const char *bytes_arg(lua_State *L, Binding *b, int index, const char *call, size_t *bytes)
{
    if (lua_type(L, index) != LUA_TSTRING)
        yl_wrong_type(L, (Target){b, call, "bytes"}, index, "a string");
    return lua_tolstring(L, index, bytes);
}

/* Implements x:copy_from_string(bytes): overwrites x with row-major elements, and returns x. */
static int copy_from_string(lua_State *L)
{
    Binding *b = yl_binding(L);
    size_t bytes;
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "copy_from_string", "self");
    const char *data = bytes_arg(L, b, 2, "copy_from_string", &bytes);
    YL_CALL(L, b, tensor, yoke_tensor_copy_from_host(tensor, data, (int64_t)bytes));
    lua_settop(L, 1);
    return 1;
}

/* Implements yoke.frombuffer(bytes, shape, dtype, device): returns a new tensor of row-major elements in a string. */
static int frombuffer(lua_State *L)
{
    static const char call[] = "frombuffer";
    Binding *b = yl_binding(L);
    const Target shape = {b, call, "shape"}, dtype = {b, call, "dtype"},
                 device = {b, call, "device"};
    size_t bytes;
    Lists lists = {.used = 0};
    yl_arg_count(L, b, call, 3, 4);
    const char *data = bytes_arg(L, b, 1, call, &bytes);
    yoke_tensor **box = yl_new_tensor(L, b);
    const yoke_arg axes = yl_convert(L, shape, kInts, 2, &lists);
    const yoke_dtype kind = yl_need_dtype(L, dtype, 3);
    yoke_device *where = lua_gettop(L) > 4 ? yl_need_device(L, device, 4) : NULL;
    YL_CALL(L, b, NULL,
            yoke_tensor_from_data(data, (int64_t)bytes, axes.v.ints, axes.count, kind, where, box));
    yl_count(L, b, *box, NULL);
    return 1;
}

void yl_open_list(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"tolist", tolist},
                                       {"item", item},
                                       {"tobytes", tobytes},
                                       {"copy_from_string", copy_from_string},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"tensor", make_tensor}, {"frombuffer", frombuffer}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_set_tensor_methods(L, b, methods);
}
