/*
 * Every op of libyoke as one Lua function, bound at run time from the op table: op_call is the only function there is,
 * and its upvalues are the op that it calls and the class of its results. The ops that this module was built with
 * (ops.inc) must be there; newer ones of a newer libyoke are bound too.
 */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/pressure.h"

enum { kMaxArgs = 16, kMaxResults = 4 };
enum { kListRoom = 32 }; /* tensors of lists that find room on the C stack */

/* One op as the binding sees it: the first upvalue of its Lua function. */
typedef struct OpBinding {
    Binding *binding;
    const yoke_op *op;
    int32_t required, places; /* arguments without a default; those that may stand by place */
    int8_t has_lists;         /* it takes lists of tensors */
    int8_t creates;           /* its result is new: it takes requires_grad too */
    int16_t spread;           /* the list of ints that may stand one by one, or none such: -1 */
    uint16_t takes_tensor;    /* a bit for each argument for which a tensor serves */
    uint8_t types[kMaxArgs];  /* ArgType of arg_type.h */
} OpBinding;

typedef struct Call {
    yoke_arg args[kMaxArgs];
    Lists lists;
    yoke_tensor *room[kListRoom]; /* for lists of tensors, used one after the other */
    int32_t count;
    int32_t requires_grad;
} Call;

static Target target_of(const OpBinding *binding, int i)
{
    const Target target = {binding->binding, binding->op->name, binding->op->args[i].name};
    return target;
}

static void convert(lua_State *L, const OpBinding *op, int i, int index, Call *call)
{
    call->args[i] = yl_convert(L, target_of(op, i), (ArgType)op->types[i], index, &call->lists);
}

static int argument_of(const OpBinding *op, const char *name)
{
    int i = 0;
    while (i < op->op->arg_count && strcmp(op->op->args[i].name, name)) ++i;
    return i;
}

/* A keyword that no argument has: requires_grad of what is made anew, or a mistake. */
static void convert_other(lua_State *L, const OpBinding *op, const char *key, Call *call)
{
    const char *names[kMaxArgs + 1];
    int count = 0;
    if (op->creates && !strcmp(key, "requires_grad")) {
        call->requires_grad = yl_bool_arg(L, op->binding, lua_gettop(L), op->op->name, key);
        return;
    }
    for (; count < op->op->arg_count; ++count) names[count] = op->op->args[count].name;
    if (op->creates) names[count++] = "requires_grad";
    yl_raise_keyword(L, op->binding, op->op->name, key, names, count, op->op->signature);
}

/* The keyword arguments in the table at `index`, which the `given` positional ones precede. */
static void convert_keywords(lua_State *L, const OpBinding *op, int index, int given, Call *call)
{
    for (int i = given; i < op->op->arg_count; ++i) call->args[i].kind = YOKE_ARG_NONE;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        const char *key = yl_key(L, -2);
        const int i = argument_of(op, key);
        if (i == op->op->arg_count) {
            convert_other(L, op, key, call);
            lua_pop(L, 1);
            continue;
        }
        if (i < given)
            yl_raise(L, op->binding, YOKE_E_VALUE, op->op->name,
                     "argument '%s' is given twice, by place and by name", key);
        if (op->types[i] == kTensors)
            yl_raise(L, op->binding, YOKE_E_VALUE, op->op->name,
                     "argument '%s' is a list of tensors; give it by its place", key);
        convert(L, op, i, lua_gettop(L), call);
        lua_pop(L, 1);
    }
    call->count = op->op->arg_count;
}

/* Whether the last of `given` arguments is the table of keyword arguments. An empty table is, except in
 * the place of a list. */
static inline int has_keywords(lua_State *L, const OpBinding *op, int given)
{
    if (given <= op->required || lua_type(L, given) != LUA_TTABLE) return 0;
    const int type = given <= op->op->arg_count ? op->types[given - 1] : kArgTypeCount;
    if (type == kInts || type == kOptionalInts) return yl_is_keywords(L, given);
    return lua_rawlen(L, given) == 0;
}

/* How many places the ints of a list take beyond the first where they stand one by one: randn(2, 3). */
static int spread_over(lua_State *L, const OpBinding *op, int positional)
{
    int end = op->spread + 1;
    while (end <= positional && lua_isinteger(L, end)) ++end;
    return end > op->spread + 2 ? end - op->spread - 2 : 0;
}

static void convert_spread(lua_State *L, const OpBinding *op, int extra, Call *call)
{
    const int place = op->spread, count = extra + 1;
    if (count > YL_MAX_INTS)
        yl_raise(L, op->binding, YOKE_E_VALUE, op->op->name,
                 "argument '%s' is %d integers; a tensor has at most %d axes",
                 op->op->args[place].name, count, YOKE_MAX_NDIM);
    for (int i = 0; i < count; ++i) call->lists.items[i] = lua_tointeger(L, place + 1 + i);
    call->lists.used = count;
    call->args[place] = (yoke_arg){YOKE_ARG_INTS, count, {.ints = call->lists.items}};
}

/* The tensors that the arguments begin with, and how many they are: what most calls are made of. */
static inline int convert_tensors(lua_State *L, const OpBinding *op, int positional, Call *call)
{
    int i = 0;
    for (; i < positional && op->takes_tensor >> i & 1; ++i) {
        yoke_tensor **box = yl_test_tensor(L, op->binding, i + 1);
        if (!box || !*box) break;
        call->args[i] = (yoke_arg){YOKE_ARG_TENSOR, 0, {*box}};
    }
    return i;
}

static void convert_all(lua_State *L, const OpBinding *op, int given, int keywords, Call *call)
{
    const int done = convert_tensors(L, op, given - keywords, call);
    call->lists.used = 0;
    call->requires_grad = 0;
    call->count = given - keywords;
    if (done == given) return;
    const int extra = op->spread < 0 ? 0 : spread_over(L, op, given - keywords);
    call->count -= extra;
    if (extra) convert_spread(L, op, extra, call);
    for (int i = done; i < call->count; ++i) {
        if (extra && i >= op->spread) {
            if (i > op->spread) convert(L, op, i, i + 1 + extra, call);
            continue;
        }
        convert(L, op, i, i + 1, call);
    }
    if (keywords) convert_keywords(L, op, given, call->count, call);
}

/* Raises where there are more arguments than the op takes, spread ints aside. */
static void check_count(lua_State *L, const OpBinding *op, int positional)
{
    if (positional <= op->places) return;
    if (op->spread >= 0 && positional - spread_over(L, op, positional) <= op->places) return;
    if (op->places < op->op->arg_count)
        yl_raise_place(L, op->binding, op->op->name, op->op->args[op->places].name,
                       op->op->signature);
    yl_raise(L, op->binding, YOKE_E_VALUE, op->op->name, "%d arguments; it takes at most %d: %s",
             positional, op->op->arg_count, op->op->signature);
}

/* Finds room for all lists of tensors in the arguments: the C stack, or a userdata where that is too
 * small. Before any tensor is looked at, as it may run finalizers. */
static void find_room(lua_State *L, int given, Call *call)
{
    size_t needed = 0;
    for (int i = 1; i <= given; ++i)
        if (lua_type(L, i) == LUA_TTABLE) needed += lua_rawlen(L, i);
    const int fits = needed <= kListRoom;
    call->lists.room = fits ? (size_t)kListRoom : needed;
    call->lists.tensors = fits ? call->room : lua_newuserdatauv(L, needed * sizeof *call->room, 0);
}

/* The tensor of which results may be views, or NULL. */
static inline yoke_tensor *source_of(const Call *call)
{
    return call->count && call->args[0].kind == YOKE_ARG_TENSOR ? call->args[0].v.tensor : NULL;
}

static yoke_status invoke(lua_State *L, const OpBinding *op, Call *call, yoke_tensor **results)
{
    const int32_t id = op->op->id, result_count = op->op->result_count;
    if (!op->binding->scopes)
        return yoke_op_invoke(id, call->args, call->count, results, result_count);
    const Modes outer = yl_enter(L, op->binding);
    const yoke_status status = yoke_op_invoke(id, call->args, call->count, results, result_count);
    yl_leave(outer);
    return status;
}

static int op_call(lua_State *L)
{
    const OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    Binding *b = op->binding;
    const int given = lua_gettop(L), result_count = op->op->result_count;
    const int keywords = has_keywords(L, op, given);
    if (given - keywords > op->places) check_count(L, op, given - keywords);

    yoke_tensor **boxes[kMaxResults], *results[kMaxResults];
    for (int i = 0; i < result_count; ++i) boxes[i] = yl_new_tensor_of(L, b, lua_upvalueindex(2));
    Call call;
    for (int attempt = 0;; ++attempt) {
        if (op->has_lists) find_room(L, given, &call);
        convert_all(L, op, given, keywords, &call);
        const yoke_status status = invoke(L, op, &call, results);
        if (!status) break;
        if (status != YOKE_E_OOM || attempt) return yl_raise_last(L, b);
        lua_gc(L, LUA_GCCOLLECT, 0); /* may close arguments: all is converted again */
    }
    for (int i = 0; i < result_count; ++i) *boxes[i] = results[i];
    if (call.requires_grad) yl_check(L, b, yoke_tensor_set_requires_grad(results[0], 1));

    if (op->has_lists) lua_settop(L, given + result_count);
    if (op->op->mut_arg >= 0) {
        lua_pushvalue(L, op->op->mut_arg + 1);
        return 1;
    }
    yoke_tensor *source = source_of(&call);
    for (int i = 0; i < result_count; ++i) yl_count(L, b, results[i], source);
    return result_count;
}

/* Room for a list of results above the `given` arguments: a userdata, which is returned, and a table of empty
 * tensors. */
static yoke_tensor **push_list(lua_State *L, Binding *b, int given, int64_t count)
{
    lua_settop(L, given);
    luaL_checkstack(L, 4, "no room for a list of results");
    yoke_tensor **outs = lua_newuserdatauv(L, (size_t)count * sizeof *outs, 0);
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (int64_t i = 0; i < count; ++i) {
        yl_new_tensor(L, b);
        lua_rawseti(L, given + 2, i + 1);
    }
    return outs;
}

/* Moves results into the tensors of the table, which is left on top of the stack. */
static void fill_list(lua_State *L, Binding *b, int given, yoke_tensor **outs, int64_t count,
                      yoke_tensor *source)
{
    for (int64_t i = 0; i < count; ++i, lua_pop(L, 1)) {
        lua_rawgeti(L, given + 2, i + 1);
        *yl_test_tensor(L, b, -1) = outs[i];
    }
    /* Counting may run finalizers, which may close the argument; the first result stands for it then. */
    for (int64_t i = 0; i < count; ++i) yl_count(L, b, outs[i], i ? outs[0] : source);
    lua_settop(L, given + 2);
}

/* An op whose results are a list, given as a table. It is called twice: first to learn how many results
 * there are, since their userdata must be there before they are made. */
static int op_call_list(lua_State *L)
{
    const OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    Binding *b = op->binding;
    const int given = lua_gettop(L), keywords = has_keywords(L, op, given);
    check_count(L, op, given - keywords);
    int64_t room = 0, count = 0;
    yoke_tensor **outs = NULL;
    Call call;
    for (int collected = 0;;) {
        if (op->has_lists) find_room(L, given, &call);
        convert_all(L, op, given, keywords, &call);
        const Modes outer = yl_enter(L, b);
        const yoke_status status =
            yoke_op_invoke_list(op->op->id, call.args, call.count, outs, room, &count);
        yl_leave(outer);
        if (!status) break;
        if (status == YOKE_E_OOM && !collected++)
            lua_gc(L, LUA_GCCOLLECT, 0);
        else if (count > room)
            outs = push_list(L, b, given, room = count);
        else
            return yl_raise_last(L, b);
    }
    if (room)
        fill_list(L, b, given, outs, count, source_of(&call));
    else
        lua_createtable(L, 0, 0);
    return 1;
}

/* Lua hands a unary operator its operand twice. */
static int op_unary(lua_State *L)
{
    lua_settop(L, 1);
    return op_call(L);
}

/* The list of ints that is the last required argument, unless a number may follow it: split(x, 2, 1) is of
 * size 2 along axis 1. */
static int16_t spread_of(const OpBinding *op)
{
    int last = op->op->arg_count - 1;
    while (last >= 0 && (op->op->args[last].has_default || yl_arg_types[op->types[last]].takes_nil))
        --last;
    if (last < 0 || op->types[last] != kInts) return -1;
    if (last + 1 < op->op->arg_count && yl_arg_types[op->types[last + 1]].takes_number) return -1;
    return (int16_t)last;
}

static void bind_op(lua_State *L, Binding *b, const yoke_op *op, OpBinding *binding)
{
    if (op->arg_count > kMaxArgs || op->result_count > kMaxResults)
        luaL_error(L, "yoke: the op %s of this libyoke has too many arguments for this module",
                   op->name);
    binding->binding = b;
    binding->op = op;
    binding->required = 0;
    binding->places = 0;
    binding->takes_tensor = 0;
    binding->has_lists = 0;
    binding->creates = 0;
    for (int i = 0; i < op->arg_count; ++i) {
        const ArgType type = yl_arg_type(op->args[i].type);
        if (type == kArgTypeCount)
            luaL_error(
                L, "yoke: the op %s of this libyoke takes a %s, which this module does not know",
                op->name, op->args[i].type);
        binding->types[i] = (uint8_t)type;
        binding->takes_tensor |= (uint16_t)(yl_arg_types[type].takes_tensor << i);
        binding->has_lists |= type == kTensors;
        binding->creates |= type == kDevice;
        binding->places += !op->args[i].by_name;
        if (!op->args[i].has_default) binding->required = i + 1;
    }
    binding->spread = spread_of(binding);
}

static void check_built_for(lua_State *L)
{
    static const char *const names[] = {
#define YOKE_LUA_OP(name, id) #name,
#include "bindings/lua/src/ops.inc"
#undef YOKE_LUA_OP
    };
    int32_t id;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (yoke_op_find(names[i], &id))
            luaL_error(
                L, "yoke: this module was built for a newer libyoke than %s, which has no op '%s'",
                yoke_version(), names[i]);
}

static void set_metamethod(lua_State *L, const char *event, OpBinding *op, lua_CFunction function)
{
    lua_pushlightuserdata(L, op);
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, function, 2);
    lua_setfield(L, -2, event);
}

/* The operators that are ops of another name. */
static void set_operators(lua_State *L, OpBinding *op)
{
    static const char *const binary[][2] = {
        {"add", "__add"}, {"sub", "__sub"}, {"mul", "__mul"}, {"div", "__div"}, {"pow", "__pow"}};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; ++i)
        if (!strcmp(op->op->name, binary[i][0])) set_metamethod(L, binary[i][1], op, op_call);
    if (!strcmp(op->op->name, "neg")) set_metamethod(L, "__unm", op, op_unary);
}

/* Sets the function of an op in the module's table at -3, the operators of the metatable at -2 and, where the first
 * argument is a tensor, the methods at -1. */
static void set_op(lua_State *L, OpBinding *binding)
{
    const char *name = binding->op->name;
    lua_pushlightuserdata(L, binding);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, binding->op->result_count < 0 ? op_call_list : op_call, 2);
    if (binding->op->arg_count > 0 &&
        (binding->types[0] == kTensor || binding->types[0] == kOperand)) {
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, name);
    }
    lua_setfield(L, -4, name);
    lua_pushvalue(L, -2);
    set_operators(L, binding);
    lua_pop(L, 1);
}

void yl_open_ops(lua_State *L, Binding *b)
{
    const int32_t count = yoke_op_count();
    check_built_for(L);
    OpBinding *bindings = lua_newuserdatauv(L, (size_t)count * sizeof *bindings, 0);
    luaL_ref(L, LUA_REGISTRYINDEX); /* which keeps them */
    luaL_getmetatable(L, "yoke.Tensor");
    lua_getfield(L, -1, "methods");
    for (int32_t i = 0; i < count; ++i) {
        bind_op(L, b, yoke_op_info(i), &bindings[i]);
        set_op(L, &bindings[i]);
    }
    lua_pop(L, 2);
}
