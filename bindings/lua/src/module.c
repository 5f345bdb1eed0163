/* `require "yoke.core"`: makes the state's Binding and opens each leaf. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/error.h"
#include "bindings/lua/src/runtime/other_names.h"
#include "bindings/lua/src/runtime/poll.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/values/shape.h"
#include "bindings/lua/src/values/tensor.h"

static const char kBindingName[] = "yoke.Binding";

/* Closes the state's log and scopes. The Binding is the first object of the module to get a finalizer, so it is
 * finalized last. */
static int binding_gc(lua_State *L)
{
    Binding *b = luaL_checkudata(L, 1, kBindingName);
    if (b->is_open) {
        yl_close_log(b);
        yl_close_scopes(b); /* if a script has removed the finalizers */
    }
    b->is_open = 0;
    return 0;
}

/* Makes the state's Binding, and pushes nothing; the registry keeps the Binding. */
static Binding *make_binding(lua_State *L)
{
    TensorState *state = lua_newuserdatauv(L, sizeof *state, 0);
    *state = (TensorState){.metatable_ref = LUA_NOREF};
    luaL_newmetatable(L, kBindingName);
    lua_pushcfunction(L, binding_gc);
    lua_setfield(L, -2, "__gc");
    yl_protect(L, kBindingName);
    lua_setmetatable(L, -2);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return &state->binding;
}

/* Opens the leaves in this order: methods of tensors need the class, operators the ops. */
static void open_leaves(lua_State *L, Binding *b)
{
    static void (*const leaves[])(lua_State *, Binding *) = {
        yl_open_ops,           yl_open_tensor_fields, yl_open_index,     yl_open_list,
        yl_open_autograd,      yl_open_hooks,         yl_open_modes,     yl_open_device,
        yl_open_device_fields, yl_open_stream,        yl_open_memory,    yl_open_library,
        yl_open_optim,         yl_open_training,      yl_open_schedules, yl_open_graph,
        yl_open_doctor,        yl_open_inventory,     yl_open_select,    yl_open_checkpoint,
        yl_open_state,         yl_open_checkpoints,   yl_open_comm,      yl_open_comm_init,
        yl_open_parallel,      yl_open_jobs,          yl_open_preempt,   yl_open_relief};
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; ++i) leaves[i](L, b);
}

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int luaopen_yoke_core(lua_State *L);

int luaopen_yoke_core(lua_State *L)
{
    static const char key; /* key of the module's table in the registry */
    luaL_checkversion(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TTABLE) return 1;
    Binding *b = make_binding(L);
    lua_newtable(L);
    yl_open_error(L, b);
    yl_open_other_names(L, b);
    yl_open_poll(L, b);
    yl_open_log(L, b);
    b->is_open = 1; /* from here on the state has resources to close */
    yl_open_scope(L, b);
    yl_open_tensor(L, b);
    yl_open_shape(L, b);
    open_leaves(L, b);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    return 1;
}
