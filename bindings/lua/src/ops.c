/*
 * Every op of libyoke as a Lua function, bound at run time from the op table. op_call is the only C function; its
 * upvalues are the op and the class of its results. The ops of this module's build (ops.inc) must be there; newer ops
 * of a newer libyoke are bound too.
 */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/op_call.h"
#include "bindings/lua/src/values/pressure.h"

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
    OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    Binding *b = op->binding;
    const int given = lua_gettop(L), result_count = op->op->result_count;
    const int keywords = yl_has_keywords(L, op, given);
    if (given - keywords > op->places) yl_check_count(L, op, given - keywords);

    yoke_tensor **boxes[kMaxResults], *results[kMaxResults];
    for (int i = 0; i < result_count; ++i) boxes[i] = yl_new_tensor_of(L, b, lua_upvalueindex(2));
    Call call;
    if (op->has_lists) yl_find_room(L, given, &call);
    yl_read_arguments(L, op, given, keywords, &call);
    yoke_tensor *source = yl_source_of(&call);
    yoke_status status = invoke(L, op, &call, results);
    if (status == YOKE_E_OOM) {
        lua_State *const outer = yl_begin_call_relief(L, &call);
        status = invoke(L, op, &call, results);
        yl_end_call_relief(outer, &call);
        source = NULL; /* may be gone by now */
    }
    if (status) return yl_raise_last(L, b);
    for (int i = 0; i < result_count; ++i) *boxes[i] = results[i];
    if (call.requires_grad) yl_check(L, b, yoke_tensor_set_requires_grad(results[0], 1));

    if (op->has_lists) lua_settop(L, given + result_count);
    if (op->op->mut_arg >= 0) {
        lua_pushvalue(L, op->op->mut_arg + 1);
        return 1;
    }
    for (int i = 0; i < result_count; ++i) yl_count(L, b, results[i], source);
    return result_count;
}

/* Pushes space for a list of results above the `given` arguments: a userdata, which is returned, and a table of empty
 * tensors. */
static yoke_tensor **push_list(lua_State *L, Binding *b, int given, int64_t count)
{
    lua_settop(L, given);
    luaL_checkstack(L, 4, "no Lua stack for a list of results");
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
    /* Counting may run finalizers that close the argument; then the first result stands for it. */
    for (int64_t i = 0; i < count; ++i) yl_count(L, b, outs[i], i ? outs[0] : source);
    lua_settop(L, given + 2);
}

/* Calls an op whose results are a list, returned as a table. The op is called twice, because the results' userdata
 * must exist before the results: the first call reads the number of results. */
static int op_call_list(lua_State *L)
{
    OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    Binding *b = op->binding;
    const int given = lua_gettop(L), keywords = yl_has_keywords(L, op, given);
    yl_check_count(L, op, given - keywords);
    int64_t room = 0, count = 0;
    yoke_tensor **outs = NULL;
    Call call;
    yoke_tensor *source = NULL;
    for (int has_relief = 0;;) {
        if (op->has_lists) yl_find_room(L, given, &call);
        yl_read_arguments(L, op, given, keywords, &call);
        lua_State *const relief = has_relief ? yl_begin_call_relief(L, &call) : NULL;
        const Modes outer = yl_enter(L, b);
        const yoke_status status =
            yoke_op_invoke_list(op->op->id, call.args, call.count, outs, room, &count);
        yl_leave(outer);
        if (has_relief) yl_end_call_relief(relief, &call);
        source = has_relief ? NULL : yl_source_of(&call); /* relief may have closed the source */
        if (!status) break;
        if (status == YOKE_E_OOM && !has_relief)
            has_relief = 1;
        else if (count > room)
            outs = push_list(L, b, given, room = count);
        else
            return yl_raise_last(L, b);
    }
    if (room)
        fill_list(L, b, given, outs, count, source);
    else
        lua_createtable(L, 0, 0);
    if (room == 1 && strstr(op->op->signature, "-> tensor or tensors")) lua_rawgeti(L, -1, 1);
    return 1;
}

/* Calls nonzero_tuple, the third upvalue of the function that runs, with the only argument on the stack. */
static int call_nonzero_tuple(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushcclosure(L, op_call_list, 2);
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* Calls where; with one argument, gives the places of its true elements, as in PyTorch. */
static int op_where(lua_State *L)
{
    return lua_gettop(L) == 1 ? call_nonzero_tuple(L) : op_call(L);
}

/* Calls nonzero, which also takes {as_tuple = true}. */
static int op_nonzero(lua_State *L)
{
    const OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    if (lua_gettop(L) != 2 || !lua_istable(L, 2)) return op_call(L);
    lua_getfield(L, 2, "as_tuple");
    const int is_given = !lua_isnil(L, 3);
    const int as_tuple = is_given ? yl_bool_arg(L, op->binding, 3, op->op->name, "as_tuple") : 0;
    lua_settop(L, is_given ? 1 : 2);
    return as_tuple ? call_nonzero_tuple(L) : op_call(L);
}

/* Calls a unary operator's op with one operand, since Lua hands the operand over twice. */
static int op_unary(lua_State *L)
{
    lua_settop(L, 1);
    return op_call(L);
}

/* Returns the place of the list of ints that is the last required argument, unless a number may follow: split(x, 2,
 * 1) is size 2 along axis 1. Returns -1 if there is no such list. */
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
    binding->seen_count = 0;
    for (int i = 0; i < op->arg_count; ++i) {
        const ArgType type = yl_arg_type(op->args[i].type);
        if (type == kArgTypeCount)
            luaL_error(
                L, "yoke: the op %s of this libyoke takes a %s, which this module does not support",
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

/* Sets an op as the operator that stands for it in the metatable on the top, if there is such an operator. */
static void set_operators(lua_State *L, OpBinding *op)
{
    static const char *const binary[][2] = {{"add", "__add"},
                                            {"sub", "__sub"},
                                            {"mul", "__mul"},
                                            {"div", "__div"},
                                            {"pow", "__pow"},
                                            {"floor_divide", "__idiv"},
                                            {"remainder", "__mod"},
                                            {"bitwise_and", "__band"},
                                            {"bitwise_or", "__bor"},
                                            {"bitwise_xor", "__bxor"},
                                            {"bitwise_left_shift", "__shl"},
                                            {"bitwise_right_shift", "__shr"}};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; ++i)
        if (!strcmp(op->op->name, binary[i][0])) set_metamethod(L, binary[i][1], op, op_call);
    if (!strcmp(op->op->name, "neg")) set_metamethod(L, "__unm", op, op_unary);
    if (!strcmp(op->op->name, "bitwise_not")) set_metamethod(L, "__bnot", op, op_unary);
}

/* Sets the function of an op in the module's table at -3, the operators of the metatable at -2 and, where the first
 * argument is a tensor, the methods at -1. */
static void set_op(lua_State *L, OpBinding *binding)
{
    const char *name = binding->op->name;
    const int is_where = !strcmp(name, "where"), is_nonzero = !strcmp(name, "nonzero");
    lua_pushlightuserdata(L, binding);
    lua_pushvalue(L, -3);
    if (is_where || is_nonzero) {
        int32_t tuple;
        yoke_op_find("nonzero_tuple", &tuple);
        lua_pushlightuserdata(L, binding - binding->op->id + tuple);
        lua_pushcclosure(L, is_where ? op_where : op_nonzero, 3);
    } else {
        lua_pushcclosure(L, binding->op->result_count < 0 ? op_call_list : op_call, 2);
    }
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
    luaL_ref(L, LUA_REGISTRYINDEX); /* keeps them alive */
    luaL_getmetatable(L, "yoke.Tensor");
    lua_getfield(L, -1, "methods");
    for (int32_t i = 0; i < count; ++i) {
        bind_op(L, b, yoke_op_info(i), &bindings[i]);
        set_op(L, &bindings[i]);
    }
    lua_pop(L, 2);
}
