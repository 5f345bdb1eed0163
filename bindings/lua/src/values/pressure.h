/* pressure.h: Lua's collector learns of device memory. */
#ifndef YOKE_LUA_VALUES_PRESSURE_H
#define YOKE_LUA_VALUES_PRESSURE_H

#include "bindings/lua/src/values/tensor.h"

void yl_step_collector(lua_State *L, TensorState *state, yoke_tensor *made);

/* Number of new tensors after which the collector learns of the host memory behind them. */
enum { YL_TENSORS_A_TELLING = 128 };
void yl_tell_collector(lua_State *L, TensorState *state);

/* Counts a new tensor, and steps the collector after enough tensors. A tensor costs more than its elements; kOverhead
 * stands for the rest. A view of `source` (or NULL) costs only kOverhead; the function checks for a view only if the
 * result depends on it. */
static inline void yl_count(lua_State *L, Binding *b, yoke_tensor *made, yoke_tensor *source)
{
    enum { kOverhead = 512, kWorthALook = 64 * 1024 };
    TensorState *state = yl_tensor_state(b);
    int64_t bytes = yoke_tensor_nbytes(made);
    if (bytes > kWorthALook && source &&
        yoke_tensor_storage_id(made) == yoke_tensor_storage_id(source))
        bytes = 0;
    state->fresh_bytes += bytes + kOverhead;
    if (state->fresh_bytes >= state->step_bytes) yl_step_collector(L, state, made);
    if (++state->fresh_tensors >= YL_TENSORS_A_TELLING) yl_tell_collector(L, state);
}

#endif /* YOKE_LUA_VALUES_PRESSURE_H */
