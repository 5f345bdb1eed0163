/* Managers of checkpoints, of yoke/checkpoints.h; yoke/manager.lua has the script's interface. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/checkpoints.h"

static void release_manager(void *manager)
{
    yoke_checkpoint_manager_release(manager);
}

static const YlClass kManager = {"yoke.core.CheckpointManager", "a checkpoint manager",
                                 "a closed checkpoint manager", release_manager, 0};

/* Returns whether the status has outside causes. Such a status comes back as nil and an error. */
static int is_told(yoke_status status)
{
    return status == YOKE_E_IO || status == YOKE_E_CHECKPOINT || status == YOKE_E_STATE;
}

/* Implements checkpoint_manager(folder, keep): opens a manager. */
static int open_manager(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *folder = yl_string_arg(L, b, 1, "CheckpointManager", "folder");
    const int64_t keep = yl_int_arg(L, b, 2, "CheckpointManager", "keep");
    yl_check(L, b, yoke_checkpoint_manager_open(folder, keep, yl_push_handle(L, &kManager)));
    return 1;
}

static int64_t need_step(lua_State *L, Binding *b, const char *call)
{
    const int64_t step = yl_int_arg(L, b, 2, call, "step");
    if (step < 0)
        yl_raise(L, b, YOKE_E_VALUE, call, "argument 'step' is %I; steps count from 0",
                 (lua_Integer)step);
    return step;
}

/* Implements manager:save(step, node, metadata, blocking): returns the work, or nil and why the state is not saved. */
static int save(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_checkpoint_manager *manager = yl_need_self(L, &kManager, "save");
    const int64_t step = need_step(L, b, "save");
    yoke_state *state = yl_need_state(L, b, 3, "save", "state");
    yoke_state *metadata =
        lua_isnoneornil(L, 4) ? NULL : yl_need_state(L, b, 4, "save", "metadata");
    const int blocking = lua_toboolean(L, 5);
    yoke_work **box = yl_push_work(L);
    const Modes outer = yl_enter(L, b);
    const yoke_status status =
        yoke_checkpoint_manager_save(manager, step, state, metadata, blocking, box);
    yl_leave(outer);
    if (is_told(status)) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Implements manager:latest(): returns the newest step, or nil if there is no step; nil and an error if the system
 * refuses. */
static int latest(lua_State *L)
{
    Binding *b = yl_binding(L);
    int64_t step = -1;
    const yoke_status status =
        yoke_checkpoint_manager_latest(yl_need_self(L, &kManager, "latest"), &step);
    if (is_told(status)) return yl_nil_error(L, b);
    yl_check(L, b, status);
    if (step < 0)
        lua_pushnil(L);
    else
        lua_pushinteger(L, step);
    return 1;
}

static int steps(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_checkpoint_manager *manager = yl_need_self(L, &kManager, "steps");
    const yoke_status status = yoke_checkpoint_manager_steps(manager, yl_push_state(L));
    if (is_told(status)) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Implements manager:load(step, device, verify): returns a node, or nil and why the state cannot be loaded. nil as
 * step means the newest. */
static int load(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_checkpoint_manager *manager = yl_need_self(L, &kManager, "load");
    const int64_t step = lua_isnil(L, 2) ? -1 : need_step(L, b, "load");
    yoke_device *device = yl_need_device(L, (Target){b, "load", "device"}, 3);
    const int verify = lua_toboolean(L, 4);
    yoke_state **box = yl_push_state(L);
    yoke_checkpoint_manager_retain(manager);
    lua_State *const relief = yl_begin_relief(L);
    const Modes outer = yl_enter(L, b);
    const yoke_status status =
        yoke_checkpoint_manager_load(manager, step, device, verify, NULL, box);
    yl_leave(outer);
    yl_end_relief(relief);
    yoke_checkpoint_manager_release(manager);
    if (is_told(status)) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Implements _misfits(node, into): returns a node with the list of the misfits. */
static int misfits(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *state = yl_need_state(L, b, 1, "load", "state");
    yoke_state *into = yl_need_state(L, b, 2, "load", "into");
    yl_check(L, b, yoke_state_misfits(state, into, yl_push_state(L)));
    return 1;
}

/* Implements _copy_into(node, into): copies the values of a tree into the tensors of another. */
static int copy_into(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_state *state = yl_need_state(L, b, 1, "load", "state");
    yoke_state *into = yl_need_state(L, b, 2, "load", "into");
    const Modes outer = yl_enter(L, b);
    const yoke_status status = yoke_state_copy_into(state, into);
    yl_leave(outer);
    yl_check(L, b, status);
    return 0;
}

void yl_open_checkpoints(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"_checkpoint_manager", open_manager},
                                         {"_misfits", misfits},
                                         {"_copy_into", copy_into},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"save", save}, {"latest", latest}, {"steps", steps}, {"load", load}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kManager, methods, NULL);
}
