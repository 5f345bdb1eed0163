/*
 * Every op of libyoke as a Lua function, bound at run time from the op table. op_call is the only C function; its
 * upvalues are the op and the class of its results. The ops of this module's build (ops.inc) must be there; newer ops
 * of a newer libyoke are bound too.
 */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/values/forms.h"
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

/* Calls an op with the arguments on the stack; the second upvalue is the class of its results. */
static int call_op(lua_State *L, OpBinding *op)
{
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

static int op_call(lua_State *L)
{
    return call_op(L, lua_touserdata(L, lua_upvalueindex(1)));
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
static int call_list(lua_State *L, OpBinding *op)
{
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

static int op_call_list(lua_State *L)
{
    return call_list(L, lua_touserdata(L, lua_upvalueindex(1)));
}

/* Calls an op that has further forms, in the form of the arguments. */
static int op_call_form(lua_State *L)
{
    OpBinding *op = yl_form_of(L, lua_touserdata(L, lua_upvalueindex(1)));
    return op->op->result_count < 0 ? call_list(L, op) : call_op(L, op);
}

/* Calls an op whose only result is a truth, returned as a boolean. */
static int op_call_truth(lua_State *L)
{
    const OpBinding *op = lua_touserdata(L, lua_upvalueindex(1));
    op_call(L);
    yoke_tensor *tensor = yl_tensor_arg(L, op->binding, lua_gettop(L), op->name, "out");
    int64_t truth = 0;
    YL_CALL(L, op->binding, tensor, yoke_tensor_item_i64(tensor, &truth));
    lua_pushboolean(L, truth != 0);
    return 1;
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

/* Reads argument `i`, which is argument `at` of the op, or one that the binding alone reads. */
static void bind_arg(lua_State *L, OpBinding *binding, int i, int at)
{
    const yoke_op *op = binding->op;
    const char *text = at < op->arg_count ? op->args[at].type : "bool";
    const ArgType type = yl_arg_type(text);
    if (type == kArgTypeCount)
        luaL_error(L,
                   "yoke: the op %s of this libyoke takes a %s, which this module does not support",
                   op->name, text);
    binding->at[i] = (uint8_t)at;
    binding->types[i] = (uint8_t)type;
    binding->takes_tensor |= (uint16_t)(yl_arg_types[type].takes_tensor << i);
    binding->has_lists |= type == kTensors;
    binding->creates |= type == kDevice;
    if (!yl_has_default(binding, i)) binding->required = i + 1;
}

static void bind_op(lua_State *L, Binding *b, const yoke_op *op, OpBinding *binding)
{
    if (op->arg_count > kMaxArgs || op->result_count > kMaxResults)
        luaL_error(L, "yoke: the op %s of this libyoke has too many arguments for this module",
                   op->name);
    *binding =
        (OpBinding){.binding = b,
                    .op = op,
                    .name = op->name,
                    .signature = op->signature,
                    .arg_count = op->arg_count,
                    .gives_truth = !strcmp(op->name, "allclose") || !strcmp(op->name, "equal")};
    for (int i = 0; i < op->arg_count; ++i) {
        binding->names[i] = op->args[i].name;
        binding->places += !op->args[i].by_name;
        bind_arg(L, binding, i, i);
    }
    /* `x + true` is a slip. */
    binding->takes_boolean = binding->required > 2;
    binding->spread = spread_of(binding);
}

static const yoke_op *find_op(lua_State *L, const char *name)
{
    int32_t id;
    if (yoke_op_find(name, &id))
        luaL_error(L,
                   "yoke: this module was built for a newer libyoke than %s, which has no op '%s'",
                   yoke_version(), name);
    return yoke_op_info(id);
}

static void bind_form(lua_State *L, Binding *b, const Form *form, OpBinding *binding)
{
    *binding = (OpBinding){.binding = b,
                           .op = find_op(L, form->op),
                           .name = form->call,
                           .signature = form->signature,
                           .arg_count = form->arg_count,
                           .places = form->places,
                           .is_form = 1,
                           .spread = -1};
    for (int i = 0; i < form->arg_count; ++i) {
        binding->names[i] = form->args[i].name;
        bind_arg(L, binding, i, form->args[i].at);
    }
}

/* Adds the forms to their calls; `count` bindings of ops come before the bindings of forms. */
static void bind_forms(lua_State *L, Binding *b, OpBinding *bindings, int32_t count)
{
    for (int i = 0; i < yl_form_total; ++i) {
        OpBinding *op = &bindings[find_op(L, yl_forms[i].call)->id];
        bind_form(L, b, &yl_forms[i], &bindings[count + i]);
        if (yl_forms[i].places < yl_forms[i].arg_count) op->signature = yl_forms[i].signature;
        if (op->form_count++) continue;
        op->forms = &yl_forms[i];
        op->form_bindings = &bindings[count + i];
    }
}

static void check_built_for(lua_State *L)
{
    static const char *const names[] = {
#define YOKE_LUA_OP(name, id) #name,
#include "bindings/lua/src/ops.inc"
#undef YOKE_LUA_OP
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) find_op(L, names[i]);
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

static lua_CFunction function_of(const OpBinding *op)
{
    if (op->form_count) return op_call_form;
    if (op->gives_truth) return op_call_truth;
    return op->op->result_count < 0 ? op_call_list : op_call;
}

/* Sets the function of an op in the module's table at -3, the operators of the metatable at -2 and, where the first
 * argument is a tensor, the methods at -1. */
static void set_op(lua_State *L, OpBinding *binding)
{
    const char *name = binding->op->name;
    lua_pushlightuserdata(L, binding);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, function_of(binding), 2);
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

/* Returns the function of an op under another name, which its errors say: core.named_op("tile", "repeat"). */
static int named_op(lua_State *L)
{
    const OpBinding *bindings = lua_touserdata(L, lua_upvalueindex(1));
    OpBinding *named = lua_newuserdatauv(L, sizeof *named, 0);
    *named = bindings[find_op(L, luaL_checkstring(L, 1))->id];
    named->name = luaL_checkstring(L, 2);
    named->seen_count = 0;
    luaL_getmetatable(L, "yoke.Tensor");
    lua_pushvalue(L, 2); /* keeps the name */
    lua_pushcclosure(L, function_of(named), 3);
    return 1;
}

void yl_open_ops(lua_State *L, Binding *b)
{
    const int32_t count = yoke_op_count();
    check_built_for(L);
    OpBinding *bindings =
        lua_newuserdatauv(L, ((size_t)count + (size_t)yl_form_total) * sizeof *bindings, 0);
    luaL_ref(L, LUA_REGISTRYINDEX); /* keeps them alive */
    luaL_getmetatable(L, "yoke.Tensor");
    lua_getfield(L, -1, "methods");
    for (int32_t i = 0; i < count; ++i) bind_op(L, b, yoke_op_info(i), &bindings[i]);
    bind_forms(L, b, bindings, count);
    for (int32_t i = 0; i < count; ++i) set_op(L, &bindings[i]);
    lua_pop(L, 2);
    lua_pushlightuserdata(L, bindings);
    lua_pushcclosure(L, named_op, 1);
    lua_setfield(L, -2, "named_op");
}
