/*
 * The optimizer userdata: a yoke_optimizer with the verbs of yoke/optim.h as methods.
 * Groups and parameters are counted from 0. yoke/optim.lua builds SGD, Adam and param_groups on it.
 */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/convert.h"

/* The options of either kind. */
typedef struct Options {
    yoke_sgd_options sgd;
    yoke_adam_options adam;
} Options;

static const Options kNoOptions = {{sizeof(yoke_sgd_options), 0, 0, 0, 0, 0, 0},
                                   {sizeof(yoke_adam_options), 0, 0, 0, 0, 0, 0}};

/* Returns the open optimizer at 1 with its kind; raises for any other value. */
static OptimizerBox *need_box(lua_State *L, const char *call)
{
    yl_need_self(L, &yl_optimizer_class, call);
    return lua_touserdata(L, 1);
}

static yoke_optimizer *need_optimizer(lua_State *L, Binding *b, const char *call)
{
    return yl_optimizer_arg(L, b, 1, call, "self");
}

static int is_sgd(const OptimizerBox *box)
{
    return box->kind[0] == 'S';
}

static void read_number(lua_State *L, Binding *b, int index, const char *call, const char *name,
                        double *out)
{
    if (lua_getfield(L, index, name) != LUA_TNIL) *out = yl_number_arg(L, b, -1, call, name);
    lua_pop(L, 1);
}

static void read_bool(lua_State *L, Binding *b, int index, const char *call, const char *name,
                      int32_t *out)
{
    if (lua_getfield(L, index, name) != LUA_TNIL) *out = yl_bool_arg(L, b, -1, call, name);
    lua_pop(L, 1);
}

static void read_betas(lua_State *L, Binding *b, int index, const char *call,
                       yoke_adam_options *options)
{
    const Target target = {b, call, "betas"};
    const int type = lua_getfield(L, index, "betas");
    if (type != LUA_TNIL) {
        if (type != LUA_TTABLE || lua_rawlen(L, -1) != 2)
            yl_wrong_type(L, target, -1, "a list of two numbers");
        lua_rawgeti(L, -1, 1);
        options->beta1 = yl_number_arg(L, b, -1, call, "betas");
        lua_rawgeti(L, -2, 2);
        options->beta2 = yl_number_arg(L, b, -1, call, "betas");
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

/* Overwrites the options present in the table at `index`. */
static void read_options(lua_State *L, Binding *b, int index, const OptimizerBox *box, Options *o)
{
    const char *call = box->kind;
    if (is_sgd(box)) {
        read_number(L, b, index, call, "lr", &o->sgd.lr);
        read_number(L, b, index, call, "momentum", &o->sgd.momentum);
        read_number(L, b, index, call, "weight_decay", &o->sgd.weight_decay);
        read_bool(L, b, index, call, "nesterov", &o->sgd.nesterov);
        read_bool(L, b, index, call, "master_weights", &o->sgd.master_weights);
        return;
    }
    read_number(L, b, index, call, "lr", &o->adam.lr);
    read_betas(L, b, index, call, &o->adam);
    read_number(L, b, index, call, "eps", &o->adam.eps);
    read_number(L, b, index, call, "weight_decay", &o->adam.weight_decay);
    read_bool(L, b, index, call, "master_weights", &o->adam.master_weights);
}

static int64_t group_arg(lua_State *L, Binding *b, const char *call, int index)
{
    return lua_isnoneornil(L, index) ? 0 : yl_int_arg(L, b, index, call, "group");
}

/* Implements core.optimizer(kind, options): returns an optimizer without parameters; kind is SGD, Adam or AdamW. */
static int make_optimizer(lua_State *L)
{
    static const char *const kinds[] = {"SGD", "Adam", "AdamW", NULL};
    Binding *b = yl_binding(L);
    const int kind = luaL_checkoption(L, 1, NULL, kinds);
    luaL_checktype(L, 2, LUA_TTABLE);
    OptimizerBox *box = yl_push_handle(L, &yl_optimizer_class);
    box->kind = kinds[kind];
    Options options = kNoOptions;
    read_options(L, b, 2, box, &options);
    yl_check(L, b,
             kind == 0   ? yoke_sgd_create(&options.sgd, &box->optimizer)
             : kind == 1 ? yoke_adam_create(&options.adam, &box->optimizer)
                         : yoke_adamw_create(&options.adam, &box->optimizer));
    return 1;
}

/* Implements optimizer:add_group(list of tensors, options). */
static int add_group(lua_State *L)
{
    Binding *b = yl_binding(L);
    OptimizerBox *box = need_box(L, "add_group");
    const Target target = {b, box->kind, "params"};
    if (lua_type(L, 2) != LUA_TTABLE) yl_wrong_type(L, target, 2, "a list of tensors");
    luaL_checktype(L, 3, LUA_TTABLE);
    Options options = kNoOptions;
    read_options(L, b, 3, box, &options);
    const yoke_arg list = yl_tensors_arg(L, target, 2);
    box = need_box(L, "add_group");
    yl_check(L, b,
             is_sgd(box)
                 ? yoke_sgd_add_group(box->optimizer, list.v.tensors, list.count, &options.sgd)
                 : yoke_adam_add_group(box->optimizer, list.v.tensors, list.count, &options.adam));
    return 0;
}

static void options_now(lua_State *L, Binding *b, const OptimizerBox *box, int64_t group,
                        Options *options)
{
    *options = kNoOptions;
    yl_check(L, b,
             is_sgd(box) ? yoke_sgd_get_options(box->optimizer, group, &options->sgd)
                         : yoke_adam_get_options(box->optimizer, group, &options->adam));
}

/* Implements optimizer:options(group): returns {lr =, momentum =, ...}. */
static int get_options(lua_State *L)
{
    Binding *b = yl_binding(L);
    const OptimizerBox *box = need_box(L, "options");
    Options now;
    options_now(L, b, box, group_arg(L, b, "options", 2), &now);
    lua_createtable(L, 0, 5);
    yl_set_number(L, "lr", is_sgd(box) ? now.sgd.lr : now.adam.lr);
    yl_set_number(L, "weight_decay", is_sgd(box) ? now.sgd.weight_decay : now.adam.weight_decay);
    yl_set_bool(L, "master_weights",
                is_sgd(box) ? now.sgd.master_weights : now.adam.master_weights);
    if (is_sgd(box)) {
        yl_set_number(L, "momentum", now.sgd.momentum);
        yl_set_bool(L, "nesterov", now.sgd.nesterov);
        return 1;
    }
    yl_set_number(L, "eps", now.adam.eps);
    lua_createtable(L, 2, 0);
    lua_pushnumber(L, now.adam.beta1);
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, now.adam.beta2);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, "betas");
    return 1;
}

/* Implements optimizer:set_options(group, {lr = ...}): options missing in the table stay. */
static int set_options(lua_State *L)
{
    Binding *b = yl_binding(L);
    const OptimizerBox *box = need_box(L, "set_options");
    const int64_t group = group_arg(L, b, "set_options", 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    Options options;
    options_now(L, b, box, group, &options);
    read_options(L, b, 3, box, &options);
    yoke_optimizer *optimizer = need_optimizer(L, b, "set_options");
    yl_check(L, b,
             is_sgd(box) ? yoke_sgd_set_options(optimizer, group, &options.sgd)
                         : yoke_adam_set_options(optimizer, group, &options.adam));
    return 0;
}

static int step(lua_State *L)
{
    Binding *b = yl_binding(L);
    /* No second try after OOM: what a step has already changed would be changed again. */
    yoke_optimizer *optimizer = yoke_optimizer_retain(need_optimizer(L, b, "step"));
    lua_State *const outer = yl_begin_relief(L);
    const yoke_status status = yoke_optimizer_step(optimizer);
    yl_end_relief(outer);
    yoke_optimizer_release(optimizer);
    yl_check(L, b, status);
    return 0;
}

/* Implements optimizer:zero_grad(set_to_none = true), also as a table: {set_to_none =}. */
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

static int note_schedule(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_optimizer_note_schedule(need_optimizer(L, b, "note_schedule")));
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

/* Implements optimizer:set_lr(lr, group): sets the rate of a group, or of all groups if none is named. */
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

/* Implements optimizer:state(): returns the state, with the live tensors, for load_state. */
static int state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state **box = yl_push_state(L);
    yl_check(L, b, yoke_optimizer_state(need_optimizer(L, b, "state_dict"), box));
    return 1;
}

static int load_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *node = yl_need_state(L, b, 2, "load_state_dict", "dict");
    yl_check(L, b, yoke_optimizer_load_state(need_optimizer(L, b, "load_state_dict"), node));
    return 0;
}

void yl_open_optim(lua_State *L, Binding *b)
{
    static const luaL_Reg methods[] = {{"add_group", add_group},
                                       {"options", get_options},
                                       {"set_options", set_options},
                                       {"step", step},
                                       {"zero_grad", zero_grad},
                                       {"note_schedule", note_schedule},
                                       {"get_lr", get_lr},
                                       {"set_lr", set_lr},
                                       {"group_count", group_count},
                                       {"param_count", param_count},
                                       {"param", param},
                                       {"state", state},
                                       {"load_state", load_state},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {{"optimizer", make_optimizer}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &yl_optimizer_class, methods, NULL);
}
