/*
 * Loss scaling, averages of parameters and clipping: of the rest of yoke/optim.h and yoke/amp.h.
 * yoke/scaler.lua, yoke/optim.lua and yoke/schedule.lua give them their faces.
 */
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/pressure.h"

/* ---- Loss scaling ---------------------------------------------------------------------------------- */

static void release_scaler(void *scaler)
{
    yoke_grad_scaler_release(scaler);
}

static const YlClass kScaler = {"yoke.GradScaler", "a GradScaler", "a closed GradScaler",
                                release_scaler, 0};

/* Overwrites the entries present in the table at `index`; `scale` is the caller's name of the scale. */
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

/* Implements core.grad_scaler{scale =, growth_factor =, backoff_factor =, growth_interval =, enabled =}. */
static int make_scaler(lua_State *L)
{
    Binding *b = yl_binding(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    yoke_grad_scaler_options state = {sizeof state, 0, 65536, 2, 0.5, 2000, 0};
    read_state(L, b, 1, "GradScaler", "init_scale", &state);
    yoke_grad_scaler **box = yl_push_handle(L, &kScaler);
    yl_check(L, b, yoke_grad_scaler_create(&state, box));
    return 1;
}

static int scaler_scale(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *x = yl_tensor_arg(L, b, 2, "scale", "outputs");
    yoke_grad_scaler *scaler = yl_need_self(L, &kScaler, "scale");
    YL_CALL(L, b, x, yoke_grad_scaler_scale(scaler, x, box));
    yl_count(L, b, *box, NULL);
    return 1;
}

static int scaler_unscale(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_optimizer *optimizer = yl_optimizer_arg(L, b, 2, "unscale_", "optimizer");
    yl_check(L, b, yoke_grad_scaler_unscale(yl_need_self(L, &kScaler, "unscale_"), optimizer));
    return 0;
}

static int scaler_step(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_optimizer *optimizer = yl_optimizer_arg(L, b, 2, "step", "optimizer");
    yoke_grad_scaler *scaler = yl_need_self(L, &kScaler, "step");
    yoke_grad_scaler **box = lua_touserdata(L, 1);
    *box = NULL; /* relief cannot close the optimizer within its step */
    yoke_optimizer_retain(optimizer);
    lua_State *const outer = yl_begin_relief(L);
    const yoke_status status = yoke_grad_scaler_step(scaler, optimizer);
    yl_end_relief(outer);
    yoke_optimizer_release(optimizer);
    *box = scaler;
    yl_check(L, b, status);
    return 0;
}

/* Implements scaler:update([scale]): updates the scale by the rule, or takes a tensor as the scale. */
static int scaler_update(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_grad_scaler *scaler = yl_need_self(L, &kScaler, "update");
    if (lua_isnoneornil(L, 2))
        yl_check(L, b, yoke_grad_scaler_update(scaler));
    else
        yl_check(L, b,
                 yoke_grad_scaler_update_to(scaler, yl_tensor_arg(L, b, 2, "update", "new_scale")));
    return 0;
}

/* Implements scaler:get_state(): returns {scale =, growth_factor =, backoff_factor =, growth_interval =,
 * _growth_tracker =}. */
static int scaler_get_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_grad_scaler_options now = {sizeof now, 0, 0, 0, 0, 0, 0};
    yl_check(L, b, yoke_grad_scaler_get_state(yl_need_self(L, &kScaler, "get_state"), &now));
    lua_createtable(L, 0, 5);
    yl_set_number(L, "scale", now.scale);
    yl_set_number(L, "growth_factor", now.growth_factor);
    yl_set_number(L, "backoff_factor", now.backoff_factor);
    yl_set_integer(L, "growth_interval", now.growth_interval);
    yl_set_integer(L, "_growth_tracker", now.growth_tracker);
    return 1;
}

static int scaler_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state **box = yl_push_state(L);
    yl_check(L, b, yoke_grad_scaler_state(yl_need_self(L, &kScaler, "state_dict"), box));
    return 1;
}

static int scaler_load_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *node = yl_need_state(L, b, 2, "load_state_dict", "dict");
    yl_check(L, b, yoke_grad_scaler_load_state(yl_need_self(L, &kScaler, "load_state_dict"), node));
    return 0;
}

/* Implements scaler:set_rule(growth_factor, backoff_factor, growth_interval): scale and tracker stay. */
static int scaler_set_rule(lua_State *L)
{
    Binding *b = yl_binding(L);
    static const char call[] = "set_rule";
    const double growth = yl_number_arg(L, b, 2, call, "growth_factor"),
                 backoff = yl_number_arg(L, b, 3, call, "backoff_factor");
    const int64_t interval = yl_int_arg(L, b, 4, call, "growth_interval");
    yl_check(L, b,
             yoke_grad_scaler_set_rule(yl_need_self(L, &kScaler, call), growth, backoff, interval));
    return 0;
}

/* ---- Averages and clipping ------------------------------------------------------------------------- */

static void release_ema(void *ema)
{
    yoke_ema_release(ema);
}

static const YlClass kEma = {"yoke.EMA", "an EMA", "a closed EMA", release_ema, 0};

/* Implements core.ema(list of tensors, decay): returns an average of the tensors. */
static int make_ema(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "EMA", "params"};
    const double decay = yl_number_arg(L, b, 2, "EMA", "decay");
    yoke_ema **box = yl_push_handle(L, &kEma);
    const int place = lua_gettop(L);
    const yoke_arg list = yl_tensors_arg(L, target, 1);
    yl_check(L, b, yoke_ema_create(list.v.tensors, list.count, decay, box));
    lua_pushvalue(L, place);
    return 1;
}

static int ema_update(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_update(yl_need_self(L, &kEma, "update")));
    return 0;
}

static int ema_copy_to_params(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_copy_to_params(yl_need_self(L, &kEma, "copy_to_params")));
    return 0;
}

static int ema_swap(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_ema_swap(yl_need_self(L, &kEma, "swap")));
    return 0;
}

static int ema_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state **box = yl_push_state(L);
    yl_check(L, b, yoke_ema_state(yl_need_self(L, &kEma, "state_dict"), box));
    return 1;
}

static int ema_load_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *node = yl_need_state(L, b, 2, "load_state_dict", "dict");
    yl_check(L, b, yoke_ema_load_state(yl_need_self(L, &kEma, "load_state_dict"), node));
    return 0;
}

/* Implements ema:average(index): returns the live average of parameter `index`, counted from 0. */
static int ema_average(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t index = yl_int_arg(L, b, 2, "average", "index");
    yoke_tensor **box = yl_new_tensor(L, b);
    yl_check(L, b, yoke_ema_average(yl_need_self(L, &kEma, "average"), index, box));
    return 1;
}

/* Returns the argument after max_norm, or the only option of a table there; 2 if missing. */
static double norm_type_arg(lua_State *L, Binding *b, const char *call)
{
    if (lua_isnoneornil(L, 3)) return 2;
    if (!lua_istable(L, 3)) return yl_number_arg(L, b, 3, call, "norm_type");
    for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        if (strcmp(key, "norm_type"))
            yl_raise(L, b, YOKE_E_VALUE, call,
                     "there is no option '%s'; the only option is norm_type", key);
    }
    const int absent = lua_getfield(L, 3, "norm_type") == LUA_TNIL;
    const double p = absent ? 2 : yl_number_arg(L, b, -1, call, "norm_type");
    lua_pop(L, 1);
    return p;
}

/* Implements clip_grad_norm_(list of tensors, max_norm, {norm_type = 2}): returns the norm before. */
static int clip_grad_norm(lua_State *L)
{
    Binding *b = yl_binding(L);
    static const char call[] = "clip_grad_norm_";
    const Target target = {b, call, "params"};
    const double max_norm = yl_number_arg(L, b, 2, call, "max_norm"), p = norm_type_arg(L, b, call);
    yoke_tensor **box = yl_new_tensor(L, b);
    const int place = lua_gettop(L);
    const yoke_arg list = yl_tensors_arg(L, target, 1);
    yl_check(L, b, yoke_clip_grad_norm(list.v.tensors, list.count, max_norm, p, box));
    lua_pushvalue(L, place);
    return 1;
}

void yl_open_training(lua_State *L, Binding *b)
{
    static const luaL_Reg scaler[] = {
        {"scale", scaler_scale},           {"unscale", scaler_unscale},     {"step", scaler_step},
        {"update", scaler_update},         {"get_state", scaler_get_state}, {"state", scaler_state},
        {"load_state", scaler_load_state}, {"set_rule", scaler_set_rule},   {NULL, NULL}};
    static const luaL_Reg ema[] = {{"update", ema_update},
                                   {"copy_to_params", ema_copy_to_params},
                                   {"swap", ema_swap},
                                   {"average", ema_average},
                                   {"state", ema_state},
                                   {"load_state", ema_load_state},
                                   {NULL, NULL}};
    static const luaL_Reg functions[] = {{"grad_scaler", make_scaler},
                                         {"ema", make_ema},
                                         {"clip_grad_norm_", clip_grad_norm},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kScaler, scaler, NULL);
    yl_open_class(L, b, &kEma, ema, NULL);
}
