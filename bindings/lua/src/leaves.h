/* leaves.h: functions opened by module.c above the runtime and the values. Each adds its functions to the module's
 * table on top of the stack; no leaf calls another. */
#ifndef YOKE_LUA_LEAVES_H
#define YOKE_LUA_LEAVES_H

#include "bindings/lua/src/runtime/state.h"

void yl_open_log(lua_State *L, Binding *b);
void yl_close_log(Binding *b);
void yl_open_ops(lua_State *L, Binding *b);
void yl_open_tensor_fields(lua_State *L, Binding *b);
void yl_open_index(lua_State *L, Binding *b);
void yl_open_list(lua_State *L, Binding *b);
void yl_open_autograd(lua_State *L, Binding *b);
void yl_open_hooks(lua_State *L, Binding *b);
void yl_open_modes(lua_State *L, Binding *b);
void yl_open_checkpoint(lua_State *L, Binding *b);
void yl_open_device(lua_State *L, Binding *b);
void yl_open_device_fields(lua_State *L, Binding *b);
void yl_open_stream(lua_State *L, Binding *b);
void yl_open_memory(lua_State *L, Binding *b);
void yl_open_library(lua_State *L, Binding *b);
void yl_open_optim(lua_State *L, Binding *b);
void yl_open_training(lua_State *L, Binding *b);
void yl_open_schedules(lua_State *L, Binding *b);
void yl_open_graph(lua_State *L, Binding *b);
void yl_open_doctor(lua_State *L, Binding *b);
void yl_open_inventory(lua_State *L, Binding *b);
void yl_open_state(lua_State *L, Binding *b);
void yl_open_checkpoints(lua_State *L, Binding *b);
void yl_open_comm(lua_State *L, Binding *b);
void yl_open_comm_init(lua_State *L, Binding *b);
void yl_open_parallel(lua_State *L, Binding *b);
void yl_open_jobs(lua_State *L, Binding *b);
void yl_open_preempt(lua_State *L, Binding *b);
void yl_open_relief(lua_State *L, Binding *b);
void yl_open_select(lua_State *L, Binding *b);

#endif /* YOKE_LUA_LEAVES_H */
