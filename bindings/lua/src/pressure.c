/*
 * Garbage pressure. To Lua a tensor is a few bytes, whatever it holds on a device, so left alone its
 * collector would let device memory fill up. Each allocation therefore counts here, and the collector is
 * told, in small steps, that the Lua heap grew in the same proportion as the live device memory: when a
 * script has allocated as much as the larger of kFloorBytes and kShare of what is live, one cycle is done.
 */
#include "bindings/lua/src/binding.h"

enum { kSteps = 16 }; /* steps of one cycle */
enum { kShare = 4 };  /* a quarter of the live bytes */
static const int64_t kFloorBytes = 32 * 1024 * 1024;

/* A cycle starts when the heap has doubled (Lua's default pause), and needs a little more to end. */
enum { kHeapsPerCycle = 3 };

void yl_step_collector(lua_State *L, Binding *b, yoke_tensor *made)
{
    int64_t live = 0;
    if (yoke_memory_allocated(yoke_tensor_device(made), &live)) live = 0;
    const int64_t per_cycle = live / kShare > kFloorBytes ? live / kShare : kFloorBytes;
    const int64_t steps = 1 + b->fresh_bytes * kSteps / per_cycle;
    b->fresh_bytes = 0;
    b->step_bytes = per_cycle / kSteps;
    if (!lua_gc(L, LUA_GCISRUNNING)) return; /* the script has stopped it and knows why */
    const int64_t heap_kib = lua_gc(L, LUA_GCCOUNT);
    const int64_t share = heap_kib * kHeapsPerCycle * (steps < kSteps ? steps : kSteps) / kSteps;
    lua_gc(L, LUA_GCSTEP, (int)(share > 0 ? share : 1));
}

/* What Lua is told that a tensor weighs beside its userdata: a part of the handle, storage and smallest block that are really
 * there. Told nothing, it lets dead tensors pile up until making the next one misses every cache; told more, it gained
 * little in a loop of small additions. */
enum { kToldBytes = 192 };

void yl_tell_collector(lua_State *L, Binding *b)
{
    b->fresh_tensors = 0;
    if (lua_gc(L, LUA_GCISRUNNING)) lua_gc(L, LUA_GCSTEP, YL_TENSORS_A_TELLING * kToldBytes / 1024);
}
