#include "bindings/lua/src/values/handles.h"

#include "bindings/lua/src/values/arg_type.h"

static void release_device(void *device)
{
    yoke_device_release(device);
}

static void release_stream(void *stream)
{
    yoke_stream_release(stream);
}

static void release_optimizer(void *optimizer)
{
    yoke_optimizer_release(optimizer);
}

const YlClass yl_device_class = {"yoke.Device", "a device", NULL, release_device, 0};
const YlClass yl_stream_class = {"yoke.Stream", "a stream",
                                 "a closed stream; a stream cannot be used after close()",
                                 release_stream, 0};
const YlClass yl_optimizer_class = {"yoke.Optimizer", "an optimizer", "a closed optimizer",
                                    release_optimizer, sizeof(OptimizerBox)};

static const char
    kDevices; /* address is the key of a registry table: address of a device -> its handle */

void yl_push_device(lua_State *L, Binding *b, yoke_device *device)
{
    (void)b;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kDevices) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &kDevices);
    }
    lua_rawgetp(L, -1, device);
    if (!yl_test_handle(L, -1,
                        &yl_device_class)) { /* the kept handle may have been finalized by hand */
        lua_pop(L, 1);
        yoke_device **box = yl_push_handle(L, &yl_device_class);
        *box = yoke_device_retain(device);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, device);
    }
    lua_remove(L, -2);
}

/* Returns the device with a number of the current kind, borrowed: the device stays valid, see yoke/device.h. Raises
 * for a number out of range. */
static yoke_device *device_at(lua_State *L, Target target, lua_Integer number)
{
    yoke_device *device = NULL, *current = NULL;
    if (number < 0 || number > INT32_MAX)
        yl_raise(L, target.binding, YOKE_E_INDEX, target.call,
                 "argument '%s' is %I; devices count from 0", target.name, number);
    yl_check(L, target.binding, yoke_current_device(&current));
    const char *kind = yoke_device_kind(current);
    yoke_device_release(current);
    yl_check(L, target.binding, yoke_device_get(kind, (int32_t)number, &device));
    yoke_device_release(device);
    return device;
}

yoke_device *yl_need_device(lua_State *L, Target target, int index)
{
    const int type = lua_type(L, index);
    if (type <= LUA_TNIL) return NULL;
    yoke_device *device = type == LUA_TUSERDATA ? yl_test_handle(L, index, &yl_device_class) : NULL;
    if (device) return device;
    if (lua_isinteger(L, index)) return device_at(L, target, lua_tointeger(L, index));
    if (type != LUA_TSTRING) yl_wrong_type(L, target, index, yl_arg_types[kDevice].wanted);
    yl_check(L, target.binding, yoke_device_open(yl_need_text(L, target, index), &device));
    yoke_device_release(device); /* stays valid: yoke/device.h */
    return device;
}

yoke_stream *yl_need_stream(lua_State *L, Target target, int index)
{
    return yl_need_handle(L, target, index, &yl_stream_class);
}

yoke_optimizer *yl_optimizer_arg(lua_State *L, Binding *b, int index, const char *call,
                                 const char *name)
{
    const Target target = {b, call, name};
    return yl_need_handle(L, target, index, &yl_optimizer_class);
}

static void release_state(void *state)
{
    yoke_state_release(state);
}

const YlClass yl_state_class = {"yoke.State", "a state", NULL, release_state, 0};

yoke_state **yl_push_state(lua_State *L)
{
    return yl_push_handle(L, &yl_state_class);
}

yoke_state *yl_need_state(lua_State *L, Binding *b, int index, const char *call, const char *name)
{
    return yl_need_handle(L, (Target){b, call, name}, index, &yl_state_class);
}

static void release_work(void *work)
{
    yoke_work_release(work);
}

const YlClass yl_work_class = {"yoke.Work", "a work", NULL, release_work, 0};

yoke_work **yl_push_work(lua_State *L)
{
    return yl_push_handle(L, &yl_work_class);
}
