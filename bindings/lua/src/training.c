/*
 * Loss scaling, averages of parameters, clipping and schedules: the rest of yoke/optim.h and yoke/amp.h.
 * yoke/scaler.lua, yoke/optim.lua and yoke/schedule.lua give them their faces.
 */
#include <string.h>

#include "bindings/lua/src/convert.h"

static const char kScalerName[] = "yoke.GradScaler";
static const char kEmaName[] = "yoke.EMA";

/* ---- Loss scaling ---------------------------------------------------------------------------------- */

typedef struct ScalerBox {
    yoke_grad_scaler *scaler;
} ScalerBox;

static yoke_grad_scaler *need_scaler(lua_State *L, Binding *b, const char *call)
{
    const ScalerBox *box = luaL_testudata(L, 1, kScalerName);
    const Target target = {b, call, "self"};
    if (!box) yl_wrong_type(L, target, 1, "a GradScaler");
    if (!box->scaler) yl_raise(L, b, YOKE_E_CLOSED, call, "argument 'self' is a closed GradScaler");
    return box->scaler;
}

static int scaler_close(lua_State *L)
{
    ScalerBox *box = luaL_checkudata(L, 1, kScalerName);
    yoke_grad_scaler *scaler = box->scaler;
    box->scaler = NULL;
    yoke_grad_scaler_release(scaler);
    return 0;
}

/* Overwrites what the table at `index` has; `scale` is what the caller calls its scale. */
static void read_state(lua_State *L, Binding *b, int index, const char *call, const char *scale,
                       yoke_grad_scaler_options *state)
{
    if (lua_getfield(L, index, "scale") != LUA_TNIL)
        state->scale = yl_number_arg(L, b, -1, call, scale);
    if (lua_getfield(L, index, "growth_factor") != LUA_TNIL)
        state->growth_factor = yl_number_arg(L, b, -1, call, "growth_factor");
    if (lua_getfield(L, index, "backoff_factor") != LUA_TNIL)
        state->backoff_factor = yl_number_arg(L, b, -1, call, "backoff_factor");
    if (lua_getfield(L, index, "growth_interval") != LUA_TNIL)
        state->growth_interval = yl_int_arg(L, b, -1, call, "growth_interval");
    if (lua_getfield(L, index, "_growth_tracker") != LUA_TNIL)
        state->growth_tracker = yl_int_arg(L, b, -1, call, "_growth_tracker");
    if (lua_getfield(L, index, "enabled") != LUA_TNIL)
        state->disabled = !yl_bool_arg(L, b, -1, call, "enabled");
    lua_pop(L, 6);
}

/* core.grad_scaler{scale =, growth_factor =, backoff_factor =, growth_interval =, enabled =} */
static int make_scaler(lua_State *L)
{
    Binding *b = yl_binding(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    yoke_grad_scaler_options state = {sizeof state, 0, 65536, 2, 0.5, 2000, 0};
    read_state(L, b, 1, "GradScaler", "init_scale", &state);
    ScalerBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->scaler = NULL;
    luaL_setmetatable(L, kScalerName);
    yl_check(L, b, yoke_grad_scaler_create(&state, &box->scaler));
    return 1;
}

static int scaler_scale(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *x = yl_tensor_arg(L, b, 2, "scale", "outputs");
    yoke_grad_scaler *scaler = need_scaler(L, b, "scale");
    YL_CALL(L, b, x, yoke_grad_scaler_scale(scaler, x, box));
    yl_count(L, b, *box, NULL);
    return 1;
}

static int scaler_unscale(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_optimizer *optimizer = yl_optimizer_arg(L, b, 2, "unscale_", "optimizer");
    yl_check(L, b, yoke_grad_scaler_unscale(need_scaler(L, b, "unscale_"), optimizer));
    return 0;
}

static int scaler_step(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_optimizer *optimizer = yl_optimizer_arg(L, b, 2, "step", "optimizer");
    yl_check(L, b, yoke_grad_scaler_step(need_scaler(L, b, "step"), optimizer));
    return 0;
}

/* scaler:update(), or with a tensor that becomes the scale */
static int scaler_update(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_grad_scaler *scaler = need_scaler(L, b, "update");
    if (lua_isnoneornil(L, 2))
        yl_check(L, b, yoke_grad_scaler_update(scaler));
    else
        yl_check(L, b,
                 yoke_grad_scaler_update_to(scaler, yl_tensor_arg(L, b, 2, "update", "new_scale")));
    return 0;
}

/* scaler:get_state() -> {scale =, growth_factor =, backoff_factor =, growth_interval =, _growth_tracker =} */
static int scaler_get_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_grad_scaler_options now = {sizeof now, 0, 0, 0, 0, 0, 0};
    yl_check(L, b, yoke_grad_scaler_get_state(need_scaler(L, b, "get_state"), &now));
    lua_createtable(L, 0, 5);
    lua_pushnumber(L, now.scale);
    lua_setfield(L, -2, "scale");
    lua_pushnumber(L, now.growth_factor);
    lua_setfield(L, -2, "growth_factor");
    lua_pushnumber(L, now.backoff_factor);
    lua_setfield(L, -2, "backoff_factor");
    lua_pushinteger(L, now.growth_interval);
    lua_setfield(L, -2, "growth_interval");
    lua_pushinteger(L, now.growth_tracker);
    lua_setfield(L, -2, "_growth_tracker");
    return 1;
}

static int scaler_set_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    yoke_grad_scaler_options state = {sizeof state, 0, 0, 0, 0, 0, 0};
    read_state(L, b, 2, "load_state_dict", "scale", &state);
    yl_check(L, b, yoke_grad_scaler_set_state(need_scaler(L, b, "load_state_dict"), &state));
    return 0;
}

/* scaler:set_rule(growth_factor, backoff_factor, growth_interval): scale and tracker stay. */
static int scaler_set_rule(lua_State *L)
{
    Binding *b = yl_binding(L);
    static const char call[] = "set_rule";
    const double growth = yl_number_arg(L, b, 2, call, "growth_factor"),
                 backoff = yl_number_arg(L, b, 3, call, "backoff_factor");
    const int64_t interval = yl_int_arg(L, b, 4, call, "growth_interval");
    yl_check(L, b, yoke_grad_scaler_set_rule(need_scaler(L, b, call), growth, backoff, interval));
    return 0;
}

/* ---- Averages and clipping ------------------------------------------------------------------------- */

typedef struct EmaBox {
    yoke_ema *ema;
} EmaBox;

static yoke_ema *need_ema(lua_State *L, Binding *b, const char *call)
{
    const EmaBox *box = luaL_testudata(L, 1, kEmaName);
    const Target target = {b, call, "self"};
    if (!box) yl_wrong_type(L, target, 1, "an EMA");
    if (!box->ema) yl_raise(L, b, YOKE_E_CLOSED, call, "argument 'self' is a closed EMA");
    return box->ema;
}

static int ema_close(lua_State *L)
{
    EmaBox *box = luaL_checkudata(L, 1, kEmaName);
    yoke_ema *ema = box->ema;
    box->ema = NULL;
    yoke_ema_release(ema);
    return 0;
}

/* The list of tensors at `index`; its room is pushed. Handles are borrowed until the next allocation. */
static yoke_arg tensors_arg(lua_State *L, Target target, int index)
{
    if (lua_type(L, index) != LUA_TTABLE) yl_wrong_type(L, target, index, "a list of tensors");
    Lists lists = {.used = 0};
    lists.room = lua_rawlen(L, index);
    lists.tensors = lua_newuserdatauv(L, (lists.room + 1) * sizeof *lists.tensors, 0);
    return yl_convert(L, target, kTensors, index, &lists);
}

/* core.ema(list of tensors, decay) */
static int make_ema(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "EMA", "params"};
    const double decay = yl_number_arg(L, b, 2, "EMA", "decay");
    EmaBox *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->ema = NULL;
    luaL_setmetatable(L, kEmaName);
    const int place = lua_gettop(L);
    const yoke_arg list = tensors_arg(L, target, 1);
    yl_check(L, b, yoke_ema_create(list.v.tensors, list.count, decay, &box->ema));
    lua_pushvalue(L, place);
    return 1;
}

static int ema_update(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_update(need_ema(L, b, "update")));
    return 0;
}

static int ema_copy_to_params(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_copy_to_params(need_ema(L, b, "copy_to_params")));
    return 0;
}

static int ema_swap(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_swap(need_ema(L, b, "swap")));
    return 0;
}

/* ema:average(index) -> the live average of parameter `index`, counted from 0 */
static int ema_average(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t index = yl_int_arg(L, b, 2, "average", "index");
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b, yoke_ema_average(need_ema(L, b, "average"), index, box));
    return 1;
}

/* The argument behind max_norm, or the one option of a table there. */
static double norm_type_arg(lua_State *L, Binding *b, const char *call)
{
    if (lua_isnoneornil(L, 3)) return 2;
    if (!lua_istable(L, 3)) return yl_number_arg(L, b, 3, call, "norm_type");
    for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        if (strcmp(key, "norm_type"))
            yl_raise(L, b, YOKE_E_VALUE, call, "unknown option '%s'; there is norm_type", key);
    }
    const int absent = lua_getfield(L, 3, "norm_type") == LUA_TNIL;
    const double p = absent ? 2 : yl_number_arg(L, b, -1, call, "norm_type");
    lua_pop(L, 1);
    return p;
}

/* clip_grad_norm_(list of tensors, max_norm, {norm_type = 2}) -> the norm before */
static int clip_grad_norm(lua_State *L)
{
    Binding *b = yl_binding(L);
    static const char call[] = "clip_grad_norm_";
    const Target target = {b, call, "params"};
    const double max_norm = yl_number_arg(L, b, 2, call, "max_norm"), p = norm_type_arg(L, b, call);
    yoke_tensor **box = yl_new_tensor(L, b);
    const int place = lua_gettop(L);
    const yoke_arg list = tensors_arg(L, target, 1);
    yl_check(L, b, yoke_clip_grad_norm(list.v.tensors, list.count, max_norm, p, box));
    lua_pushvalue(L, place);
    return 1;
}

/* ---- Schedules ------------------------------------------------------------------------------------- */

static int schedule_linear(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_linear(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                           luaL_checkinteger(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_constant(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_constant(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                             luaL_checkinteger(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_cosine(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_cosine(luaL_checknumber(L, 1), luaL_checknumber(L, 2),
                                           luaL_checkinteger(L, 3), luaL_checkinteger(L, 4),
                                           luaL_checkinteger(L, 5)));
    return 1;
}

static int schedule_step(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_step(luaL_checknumber(L, 1), luaL_checkinteger(L, 2),
                                         luaL_checknumber(L, 3), luaL_checkinteger(L, 4)));
    return 1;
}

static int schedule_one_cycle(lua_State *L)
{
    lua_pushnumber(L, yoke_schedule_one_cycle(luaL_checknumber(L, 1), luaL_checkinteger(L, 2),
                                              luaL_checknumber(L, 3), luaL_checknumber(L, 4),
                                              luaL_checknumber(L, 5), luaL_checkinteger(L, 6)));
    return 1;
}

/* ---- Opening --------------------------------------------------------------------------------------- */

void yl_open_class(lua_State *L, Binding *b, const char *name, lua_CFunction close,
                   const luaL_Reg *methods)
{
    const luaL_Reg events[] = {{"__gc", close}, {"__close", close}, {NULL, NULL}};
    luaL_newmetatable(L, name);
    yl_set_functions(L, b, events);
    lua_newtable(L);
    yl_set_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
    yl_protect(L, name);
    lua_pop(L, 1);
}

void yl_open_training(lua_State *L, Binding *b)
{
    static const luaL_Reg scaler[] = {{"scale", scaler_scale},
                                      {"unscale", scaler_unscale},
                                      {"step", scaler_step},
                                      {"update", scaler_update},
                                      {"get_state", scaler_get_state},
                                      {"set_state", scaler_set_state},
                                      {"set_rule", scaler_set_rule},
                                      {"close", scaler_close},
                                      {NULL, NULL}};
    static const luaL_Reg ema[] = {{"update", ema_update}, {"copy_to_params", ema_copy_to_params},
                                   {"swap", ema_swap},     {"average", ema_average},
                                   {"close", ema_close},   {NULL, NULL}};
    static const luaL_Reg functions[] = {{"grad_scaler", make_scaler},
                                         {"ema", make_ema},
                                         {"clip_grad_norm_", clip_grad_norm},
                                         {NULL, NULL}};
    static const luaL_Reg schedules[] = {
        {"linear", schedule_linear}, {"constant", schedule_constant},   {"cosine", schedule_cosine},
        {"step", schedule_step},     {"one_cycle", schedule_one_cycle}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    lua_newtable(L);
    yl_set_functions(L, b, schedules);
    lua_setfield(L, -2, "schedules");
    yl_open_class(L, b, kScalerName, scaler_close, scaler);
    yl_open_class(L, b, kEmaName, ema_close, ema);
}
