/*
 * The optimizer userdata: one pointer to a yoke_optimizer, with the verbs of yoke/optim.h as methods.
 * Groups and parameters are counted from 0. yoke/optim.lua builds SGD and param_groups on it.
 */
#include <string.h>

#include "bindings/lua/src/convert.h"

static const char kOptimizerName[] = "yoke.Optimizer";

static yoke_optimizer *need_optimizer(lua_State *L, Binding *b, const char *call)
{
    yoke_optimizer **box = luaL_testudata(L, 1, kOptimizerName);
    const Target target = {b, call, "self"};
    if (!box) yl_wrong_type(L, target, 1, "an optimizer");
    if (!*box) yl_raise(L, b, YOKE_E_CLOSED, call, "argument 'self' is a closed optimizer");
    return *box;
}

static int optimizer_close(lua_State *L)
{
    yoke_optimizer **box = luaL_checkudata(L, 1, kOptimizerName);
    yoke_optimizer *optimizer = *box;
    *box = NULL;
    yoke_optimizer_release(optimizer);
    return 0;
}

/* Overwrites those options that the table at `index` has. */
static void read_options(lua_State *L, Binding *b, int index, yoke_sgd_options *options)
{
    if (lua_getfield(L, index, "lr") != LUA_TNIL)
        options->lr = yl_number_arg(L, b, -1, "SGD", "lr");
    if (lua_getfield(L, index, "momentum") != LUA_TNIL)
        options->momentum = yl_number_arg(L, b, -1, "SGD", "momentum");
    if (lua_getfield(L, index, "weight_decay") != LUA_TNIL)
        options->weight_decay = yl_number_arg(L, b, -1, "SGD", "weight_decay");
    if (lua_getfield(L, index, "nesterov") != LUA_TNIL)
        options->nesterov = yl_bool_arg(L, b, -1, "SGD", "nesterov");
    lua_pop(L, 4);
}

static int64_t group_arg(lua_State *L, Binding *b, const char *call, int index)
{
    return lua_isnoneornil(L, index) ? 0 : yl_int_arg(L, b, index, call, "group");
}

/* core.sgd(options) -> an optimizer without parameters */
static int sgd(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sgd_options options = {sizeof options, 0, 0, 0, 0};
    luaL_checktype(L, 1, LUA_TTABLE);
    read_options(L, b, 1, &options);
    yoke_optimizer **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, kOptimizerName);
    yl_check(L, b, yoke_sgd_create(&options, box));
    return 1;
}

/* optimizer:add_group(list of tensors, options or nil) */
static int add_group(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "SGD", "params"};
    yoke_optimizer *optimizer = need_optimizer(L, b, "add_group");
    if (lua_type(L, 2) != LUA_TTABLE) yl_wrong_type(L, target, 2, "a list of tensors");
    yoke_sgd_options options = {sizeof options, 0, 0, 0, 0};
    const int has_options = lua_type(L, 3) == LUA_TTABLE;
    if (has_options) read_options(L, b, 3, &options);
    Lists lists = {.used = 0};
    lists.room = lua_rawlen(L, 2);
    lists.tensors = lua_newuserdatauv(L, (lists.room + 1) * sizeof *lists.tensors, 0);
    const yoke_arg list = yl_convert(L, target, kTensors, 2, &lists);
    optimizer = need_optimizer(L, b, "add_group");
    yl_check(
        L, b,
        yoke_sgd_add_group(optimizer, list.v.tensors, list.count, has_options ? &options : NULL));
    return 0;
}

/* optimizer:options(group) -> {lr =, momentum =, weight_decay =, nesterov =} */
static int get_options(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sgd_options options = {sizeof options, 0, 0, 0, 0};
    yl_check(L, b,
             yoke_sgd_get_options(need_optimizer(L, b, "options"), group_arg(L, b, "options", 2),
                                  &options));
    lua_createtable(L, 0, 4);
    lua_pushnumber(L, options.lr);
    lua_setfield(L, -2, "lr");
    lua_pushnumber(L, options.momentum);
    lua_setfield(L, -2, "momentum");
    lua_pushnumber(L, options.weight_decay);
    lua_setfield(L, -2, "weight_decay");
    lua_pushboolean(L, options.nesterov);
    lua_setfield(L, -2, "nesterov");
    return 1;
}

/* optimizer:set_options(group, {lr = ...}): what the table lacks stays. */
static int set_options(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sgd_options options = {sizeof options, 0, 0, 0, 0};
    const int64_t group = group_arg(L, b, "set_options", 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    yl_check(L, b, yoke_sgd_get_options(need_optimizer(L, b, "set_options"), group, &options));
    read_options(L, b, 3, &options);
    yl_check(L, b, yoke_sgd_set_options(need_optimizer(L, b, "set_options"), group, &options));
    return 0;
}

static int step(lua_State *L)
{
    Binding *b = yl_binding(L);
    /* No second try after OOM: what a step has already changed would be changed again. */
    yl_check(L, b, yoke_optimizer_step(need_optimizer(L, b, "step")));
    return 0;
}

/* optimizer:zero_grad(set_to_none = true), also {set_to_none =} */
static int zero_grad(lua_State *L)
{
    Binding *b = yl_binding(L);
    if (lua_type(L, 2) == LUA_TTABLE) {
        lua_getfield(L, 2, "set_to_none");
        lua_replace(L, 2);
    }
    const int to_none =
        lua_isnoneornil(L, 2) ? 1 : yl_bool_arg(L, b, 2, "zero_grad", "set_to_none");
    yl_check(L, b, yoke_optimizer_zero_grad(need_optimizer(L, b, "zero_grad"), to_none));
    return 0;
}

static int get_lr(lua_State *L)
{
    Binding *b = yl_binding(L);
    double lr = 0;
    yl_check(
        L, b,
        yoke_optimizer_get_lr(need_optimizer(L, b, "get_lr"), group_arg(L, b, "get_lr", 2), &lr));
    lua_pushnumber(L, lr);
    return 1;
}

/* optimizer:set_lr(lr, group): of all groups if none is named */
static int set_lr(lua_State *L)
{
    Binding *b = yl_binding(L);
    const double lr = yl_number_arg(L, b, 2, "set_lr", "lr");
    const int64_t group = lua_isnoneornil(L, 3) ? -1 : yl_int_arg(L, b, 3, "set_lr", "group");
    yl_check(L, b, yoke_optimizer_set_lr(need_optimizer(L, b, "set_lr"), group, lr));
    return 0;
}

static int group_count(lua_State *L)
{
    lua_pushinteger(L, yoke_optimizer_group_count(need_optimizer(L, yl_binding(L), "group_count")));
    return 1;
}

static int param_count(lua_State *L)
{
    Binding *b = yl_binding(L);
    int64_t count = 0;
    yl_check(L, b,
             yoke_optimizer_param_count(need_optimizer(L, b, "param_count"),
                                        group_arg(L, b, "param_count", 2), &count));
    lua_pushinteger(L, count);
    return 1;
}

static int param(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t group = yl_int_arg(L, b, 2, "param", "group"),
                  index = yl_int_arg(L, b, 3, "param", "index");
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b, yoke_optimizer_param(need_optimizer(L, b, "param"), group, index, box));
    return 1;
}

/* optimizer:get_state(group, index, name) -> the live state, or nil before there is any */
static int get_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t group = yl_int_arg(L, b, 2, "get_state", "group"),
                  index = yl_int_arg(L, b, 3, "get_state", "index");
    const char *name = yl_string_arg(L, b, 4, "get_state", "name");
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b,
             yoke_optimizer_get_state(need_optimizer(L, b, "get_state"), group, index, name, box));
    if (!*box) lua_pushnil(L);
    return 1;
}

static int set_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t group = yl_int_arg(L, b, 2, "set_state", "group"),
                  index = yl_int_arg(L, b, 3, "set_state", "index");
    const char *name = yl_string_arg(L, b, 4, "set_state", "name");
    yoke_tensor *value =
        lua_isnoneornil(L, 5) ? NULL : yl_tensor_arg(L, b, 5, "set_state", "value");
    yoke_optimizer *optimizer = need_optimizer(L, b, "set_state");
    yl_check(L, b, yoke_optimizer_set_state(optimizer, group, index, name, value));
    return 0;
}

static int schedule_linear(lua_State *L)
{
    Binding *b = yl_binding(L);
    static const char call[] = "schedule.linear";
    const double start = yl_number_arg(L, b, 1, call, "start"),
                 end = yl_number_arg(L, b, 2, call, "end");
    const int64_t total = yl_int_arg(L, b, 3, call, "total_steps"),
                  at = yl_int_arg(L, b, 4, call, "step");
    lua_pushnumber(L, yoke_schedule_linear(start, end, total, at));
    return 1;
}

void yl_open_optim(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"add_group", add_group},     {"options", get_options},
                                       {"set_options", set_options}, {"step", step},
                                       {"zero_grad", zero_grad},     {"get_lr", get_lr},
                                       {"set_lr", set_lr},           {"group_count", group_count},
                                       {"param_count", param_count}, {"param", param},
                                       {"get_state", get_state},     {"set_state", set_state},
                                       {"close", optimizer_close},   {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"sgd", sgd}, {"schedule_linear", schedule_linear}, {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__gc", optimizer_close}, {"__close", optimizer_close}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    luaL_newmetatable(L, kOptimizerName);
    yl_set_functions(L, b, events);
    lua_newtable(L);
    yl_set_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, kOptimizerName);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
