/* Groups of ranks, of yoke/comm.h; yoke/comm.lua has the script's interface. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/runtime/script.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/group.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/parallel.h"

#include <string.h>

static void release_group(void *group)
{
    yoke_group_release(group);
}

const YlClass yl_group_class = {"yoke.core.Group", "a group", "a closed group", release_group, 0};

/* Implements comm_coalesce("begin" | "end" | "drop"): returns true, or nil and an error. */
static int coalesce(lua_State *L)
{
    static const char *const names[] = {"begin", "end", "drop", NULL};
    static yoke_status (*const calls[])(void) = {yoke_comm_coalesce_begin, yoke_comm_coalesce_end,
                                                 yoke_comm_coalesce_drop};
    const int which = luaL_checkoption(L, 1, NULL, names);
    YlWait wait;
    lua_pushboolean(L, 1);
    yl_begin_wait(L, &wait);
    const yoke_status status = calls[which]();
    yl_end_wait(&wait);
    return yl_told(L, yl_binding(L), status);
}

/* Implements group:about(): returns rank, size, local rank, and the connections between the ranks in words. */
static int about(lua_State *L)
{
    yoke_group *group = yl_need_self(L, &yl_group_class, "about");
    lua_pushinteger(L, yoke_group_rank(group));
    lua_pushinteger(L, yoke_group_size(group));
    lua_pushinteger(L, yoke_group_local_rank(group));
    lua_pushstring(L, yoke_group_describe(group));
    return 4;
}

/* Call that other ranks make as well: its line is recorded, and Ctrl-C ends its wait. */
typedef struct Step {
    lua_Debug line;
    YlWait wait;
} Step;

static void begin_step(lua_State *L, Step *step)
{
    yl_note_line(L, &step->line);
    yl_begin_wait(L, &step->wait);
}

static void end_step(const Step *step)
{
    yl_end_wait(&step->wait);
    yl_forget_line();
}

/* ---- Collectives --------------------------------------------------------------------------------------------- */

typedef struct Call {
    yoke_group *group;
    yoke_tensor *t, *out;
    int32_t reduction, peer;
    yoke_dtype reduce_dtype;
} Call;

static yoke_status all_reduce(const Call *c, yoke_work **work)
{
    return yoke_group_all_reduce_in(c->group, c->t, c->reduction, c->reduce_dtype, work);
}
static yoke_status reduce(const Call *c, yoke_work **work)
{
    return yoke_group_reduce(c->group, c->t, c->peer, c->reduction, work);
}
static yoke_status broadcast(const Call *c, yoke_work **work)
{
    return yoke_group_broadcast(c->group, c->t, c->peer, work);
}
static yoke_status all_gather(const Call *c, yoke_work **work)
{
    return yoke_group_all_gather(c->group, c->out, c->t, work);
}
static yoke_status gather(const Call *c, yoke_work **work)
{
    return yoke_group_gather(c->group, c->out, c->t, c->peer, work);
}
static yoke_status scatter(const Call *c, yoke_work **work)
{
    return yoke_group_scatter(c->group, c->out, c->t, c->peer, work);
}
static yoke_status reduce_scatter(const Call *c, yoke_work **work)
{
    return yoke_group_reduce_scatter(c->group, c->out, c->t, c->reduction, work);
}
static yoke_status all_to_all(const Call *c, yoke_work **work)
{
    return yoke_group_all_to_all(c->group, c->out, c->t, work);
}
static yoke_status send(const Call *c, yoke_work **work)
{
    return yoke_group_send(c->group, c->t, c->peer, work);
}
static yoke_status recv(const Call *c, yoke_work **work)
{
    return yoke_group_recv(c->group, c->t, c->peer, work);
}
static yoke_status barrier(const Call *c, yoke_work **work)
{
    return yoke_group_barrier(c->group, work);
}

static const struct {
    const char *name;
    yoke_status (*run)(const Call *, yoke_work **);
} kCalls[] = {{"all_reduce", all_reduce},
              {"reduce", reduce},
              {"broadcast", broadcast},
              {"all_gather", all_gather},
              {"gather", gather},
              {"scatter", scatter},
              {"reduce_scatter", reduce_scatter},
              {"all_to_all", all_to_all},
              {"send", send},
              {"recv", recv},
              {"barrier", barrier}};

/* Implements group:run(name, is_async, t, out, reduction, peer, reduce_dtype): returns true or the work; nil and an
 * error if the group has failed. yoke/comm.lua has checked the names and numbers. */
static int run(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *name = luaL_checkstring(L, 2);
    const int is_async = lua_toboolean(L, 3);
    Call call = {yl_need_self(L, &yl_group_class, name), NULL, NULL, 0, -1, YOKE_NONE};
    lua_settop(L, 8);
    if (!lua_isnoneornil(L, 4)) call.t = yl_tensor_arg(L, b, 4, name, "t");
    if (!lua_isnoneornil(L, 5)) call.out = yl_tensor_arg(L, b, 5, name, "out");
    call.reduction = (int32_t)luaL_optinteger(L, 6, 0);
    call.peer = (int32_t)luaL_optinteger(L, 7, -1);
    call.reduce_dtype = yl_need_dtype(L, (Target){b, name, "reduce_dtype"}, 8);
    size_t which = 0;
    while (which < sizeof kCalls / sizeof *kCalls - 1 && strcmp(kCalls[which].name, name) != 0)
        ++which;
    if (is_async) {
        lua_Debug line;
        yoke_work **work = yl_push_work(L);
        yl_note_line(L, &line);
        const yoke_status status = kCalls[which].run(&call, work);
        yl_forget_line();
        return yl_told(L, b, status);
    }
    Step step;
    begin_step(L, &step);
    const Modes outer = yl_enter(L, b);
    const yoke_status status = kCalls[which].run(&call, NULL);
    yl_leave(outer);
    end_step(&step);
    lua_pushboolean(L, 1);
    return yl_told(L, b, status);
}

static int monitored_barrier(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "monitored_barrier");
    const double timeout = yl_number_arg(L, b, 2, "monitored_barrier", "timeout");
    Step step;
    lua_pushboolean(L, 1);
    begin_step(L, &step);
    const yoke_status status = yoke_group_monitored_barrier(group, timeout);
    end_step(&step);
    return yl_told(L, b, status);
}

/* Implements group:split(color, key): returns a group, false for a negative color, or nil and an error. */
static int split(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "split");
    const int32_t color = yl_rank_arg(L, b, 2, "split", "color");
    const int64_t key = yl_int_arg(L, b, 3, "split", "key");
    yoke_group **box = yl_push_handle(L, &yl_group_class);
    Step step;
    begin_step(L, &step);
    const yoke_status status = yoke_group_split(group, color, key, box);
    end_step(&step);
    if (status == YOKE_OK && !*box) lua_pushboolean(L, 0);
    return yl_told(L, b, status);
}

/* Implements group:shrink(timeout): returns a group, or nil and an error. */
static int shrink(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "shrink");
    const double timeout = yl_seconds_arg(L, b, 2, "shrink", "timeout");
    yoke_group **box = yl_push_handle(L, &yl_group_class);
    Step step;
    begin_step(L, &step);
    const yoke_status status = yoke_group_shrink(group, timeout, box);
    end_step(&step);
    return yl_told(L, b, status);
}

/* Implements group:empty(sizes, dtype, device): returns a tensor, or nil and an error. */
static int empty(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "empty");
    const yoke_dtype dtype = yl_need_dtype(L, (Target){b, "empty", "dtype"}, 3);
    yoke_device *const device =
        lua_isnoneornil(L, 4) ? NULL : yl_need_device(L, (Target){b, "empty", "device"}, 4);
    const lua_Unsigned ndim = lua_rawlen(L, 2);
    int64_t sizes[YOKE_MAX_NDIM];
    if (ndim > YOKE_MAX_NDIM)
        yl_raise(L, b, YOKE_E_VALUE, "empty",
                 "argument 'shape' has %I axes; a tensor has at most %d", (lua_Integer)ndim,
                 YOKE_MAX_NDIM);
    for (lua_Unsigned i = 0; i < ndim; ++i) {
        lua_geti(L, 2, (lua_Integer)i + 1);
        sizes[i] = yl_int_arg(L, b, -1, "empty", "shape");
        lua_pop(L, 1);
    }
    yoke_tensor **box = yl_new_tensor(L, b);
    Step step;
    begin_step(L, &step);
    const yoke_status status =
        yoke_group_empty_on(group, sizes, (int32_t)ndim, dtype ? dtype : YOKE_F32, device, box);
    end_step(&step);
    return yl_told(L, b, status);
}

static int abort_group(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "abort");
    const char *reason = lua_isnoneornil(L, 2) ? NULL : yl_string_arg(L, b, 2, "abort", "reason");
    yl_check(L, b, yoke_group_abort(group, reason));
    return 0;
}

/* Implements group:note_refused(call, why): reports an error raised before the call to the library. */
static int note_refused(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "note_refused");
    const char *call = yl_string_arg(L, b, 2, "note_refused", "call");
    yl_check(L, b,
             yoke_group_note_refused(group, call, yl_string_arg(L, b, 3, "note_refused", "why")));
    return 0;
}

static int join_begin(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_group_join_begin(yl_need_self(L, &yl_group_class, "join")));
    return 0;
}

/* Implements group:join_end(state or nil): returns a state, false if no state was given, or nil and an error. */
static int join_end(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "join");
    yoke_state *mine = lua_isnoneornil(L, 2) ? NULL : yl_need_state(L, b, 2, "join", "objects");
    yoke_state **last = yl_push_state(L);
    Step step;
    begin_step(L, &step);
    const yoke_status status = yoke_group_join_end(group, mine, last);
    end_step(&step);
    if (status == YOKE_OK && !*last) lua_pushboolean(L, 0);
    return yl_told(L, b, status);
}

/* ---- State of a group ---------------------------------------------------------------------------------------- */

/* Implements group:dump(path): writes the group's dump, and returns true, or nil and an error. */
static int dump(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_self(L, &yl_group_class, "dump");
    const char *path = yl_string_arg(L, b, 2, "dump", "path");
    lua_pushboolean(L, 1);
    return yl_told(L, b, yoke_group_dump(group, path));
}

void yl_open_comm(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"_comm_coalesce", coalesce}, {"_comm_tell_lines", yl_tell_lines}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"about", about},
                                       {"run", run},
                                       {"monitored_barrier", monitored_barrier},
                                       {"split", split},
                                       {"shrink", shrink},
                                       {"empty", empty},
                                       {"abort", abort_group},
                                       {"dump", dump},
                                       {"join_begin", join_begin},
                                       {"join_end", join_end},
                                       {"note_refused", note_refused},
                                       {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &yl_group_class, methods, NULL);
}
