/*
 * Garbage pressure. For Lua a tensor is a few bytes, independent of its device memory. So with its own pace the
 * collector would let device memory fill up. Each allocation therefore counts here, and the collector runs as if the
 * Lua heap grew in proportion to the live device memory.
 *
 * The cost of a cycle depends on the Lua heap; its possible gain is the device memory allocated since the last cycle.
 * Most scripts have a small heap. For them a whole cycle runs, within a few milliseconds at most, each time that
 * kWorth bytes of device memory stand behind a byte of heap. A large heap is not walked at once, as the program would
 * stand still. It is walked in small steps: a cycle for each allocation of the larger of kFloorBytes and kShare of
 * the live memory. Tensors that die during a cycle in steps wait for the next cycle.
 */
#include "bindings/lua/src/values/pressure.h"

enum { kSteps = 16 };            /* steps of a cycle */
enum { kShare = 4 };             /* a quarter of the live bytes */
enum { kAtOnceKib = 16 * 1024 }; /* largest heap for a walk without steps */
enum { kWorth = 128 };           /* device bytes per byte of heap */
static const int64_t kFloorBytes = 32 * 1024 * 1024, kLeastBytes = 8 * 1024 * 1024;

/* A cycle starts when the heap has doubled (Lua's default pause), and needs a little more to end. */
enum { kHeapsPerCycle = 3 };

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void yl_step_collector(lua_State *L, TensorState *state, yoke_tensor *made)
{
    int64_t live = 0;
    if (yoke_memory_allocated(yoke_tensor_device(made), &live)) live = 0;
    const int64_t per_cycle = live / kShare > kFloorBytes ? live / kShare : kFloorBytes;
    const int64_t heap_kib = lua_gc(L, LUA_GCCOUNT);
    const int at_once = heap_kib <= kAtOnceKib;
    const int64_t steps = 1 + state->fresh_bytes * kSteps / per_cycle;
    state->fresh_bytes = 0;
    state->step_bytes =
        at_once ? clamp(heap_kib * 1024 * kWorth, kLeastBytes, per_cycle) : per_cycle / kSteps;
    if (!lua_gc(L, LUA_GCISRUNNING)) return; /* the script has stopped the collector on purpose */
    if (at_once) {
        lua_gc(L, LUA_GCCOLLECT);
        return;
    }
    const int64_t share = heap_kib * kHeapsPerCycle * (steps < kSteps ? steps : kSteps) / kSteps;
    lua_gc(L, LUA_GCSTEP, (int)(share > 0 ? share : 1));
}

/* Reports to Lua a tensor's weight beside its userdata: a part of the real size of handle, storage and smallest
 * block. Without a report, dead tensors pile up until a new tensor misses every cache. With a higher report, the gain
 * was small in a loop of small additions. */
enum { kToldBytes = 192 };

void yl_tell_collector(lua_State *L, TensorState *state)
{
    state->fresh_tensors = 0;
    if (lua_gc(L, LUA_GCISRUNNING)) lua_gc(L, LUA_GCSTEP, YL_TENSORS_A_TELLING * kToldBytes / 1024);
}
