/* Streams and events: userdata over one reference each. The current stream is a scope: modes.c. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/other_names.h"
#include "bindings/lua/src/values/handles.h"
#include "bindings/lua/src/values/pressure.h"

#include <limits.h>
#include <string.h>

static void release_event(void *event)
{
    yoke_event_release(event);
}

static const YlClass kEvent = {"yoke.Event", "an event",
                               "a closed event; an event cannot be used after close()",
                               release_event, 0};

static yoke_stream *self_stream(lua_State *L, const char *call)
{
    return yl_need_self(L, &yl_stream_class, call);
}

static yoke_event *self_event(lua_State *L, const char *call)
{
    return yl_need_self(L, &kEvent, call);
}

/* ---- Streams ----------------------------------------------------------------------------------------- */

/* Implements yoke.Stream(device, priority) and yoke.Stream{device =, priority =}. */
static int make_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "Stream", "device"};
    yl_arg_count(L, b, "Stream", 0, 2);
    if (lua_type(L, 1) == LUA_TTABLE) {
        static const char *const kNames[] = {"device", "priority"};
        lua_settop(L, 1);
        yl_push_named(L, b, 1, "Stream", kNames, 2, "Stream(device, priority)");
        lua_remove(L, 1);
    }
    lua_settop(L, 2);
    const int64_t priority = lua_isnil(L, 2) ? 0 : yl_int_arg(L, b, 2, "Stream", "priority");
    yoke_device *device = yl_need_device(L, target, 1);
    if (priority < INT_MIN || priority > INT_MAX)
        yl_raise(L, b, YOKE_E_VALUE, "Stream",
                 "argument 'priority' is %I; it must be a 32-bit integer", (lua_Integer)priority);
    yoke_stream **box = yl_push_handle(L, &yl_stream_class);
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(L, b, outer, yoke_stream_create(device, (int32_t)priority, box));
    return 1;
}

/* Implements yoke.wrap_stream(native, device): returns a stream; native is an integer or a light userdata. */
static int wrap_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "wrap_stream", "device"};
    yl_arg_count(L, b, "wrap_stream", 1, 2);
    void *native = lua_islightuserdata(L, 1)
                       ? lua_touserdata(L, 1)
                       : (void *)(intptr_t)yl_int_arg(L, b, 1, "wrap_stream", "native");
    yoke_device *device = yl_need_device(L, target, 2);
    yoke_stream **box = yl_push_handle(L, &yl_stream_class);
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(L, b, outer, yoke_stream_wrap(native, device, box));
    return 1;
}

static int current_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "current_stream", "device"};
    lua_settop(L, 1);
    yoke_device *device = yl_need_device(L, target, 1);
    yoke_stream **box = yl_push_handle(L, &yl_stream_class);
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(L, b, outer, yoke_current_stream(device, box));
    return 1;
}

static int stream_synchronize(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_stream_synchronize(self_stream(L, "synchronize")));
    return 0;
}

static int stream_query(lua_State *L)
{
    int32_t idle = 0;
    yl_check(L, yl_binding(L), yoke_stream_query(self_stream(L, "query"), &idle));
    lua_pushboolean(L, idle);
    return 1;
}

static int stream_wait_event(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "wait_event", "event"};
    self_stream(L, "wait_event"); /* a missing ':' is reported before a missing event */
    yoke_event *event = yl_need_handle(L, target, 2, &kEvent);
    yl_check(L, b, yoke_stream_wait_event(self_stream(L, "wait_event"), event));
    return 0;
}

/* Implements s:wait_stream(other): makes s wait for the earlier work of the other stream. */
static int stream_wait_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "wait_stream", "stream"};
    self_stream(L, "wait_stream");
    lua_settop(L, 2);
    yoke_event **box = yl_push_handle(L, &kEvent);
    yl_check(L, b, yoke_event_create(0, box));
    yl_check(L, b, yoke_event_record(*box, yl_need_stream(L, target, 2)));
    yl_check(L, b, yoke_stream_wait_event(self_stream(L, "wait_stream"), *box));
    return 0;
}

/* Implements s:record_event([event]): records the event, or a new event, and returns the event. */
static int stream_record_event(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "record_event", "event"};
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        yl_check(L, b, yoke_event_create(0, yl_push_handle(L, &kEvent)));
        lua_replace(L, 2);
    }
    yoke_event *event = yl_need_handle(L, target, 2, &kEvent);
    yl_check(L, b, yoke_event_record(event, self_stream(L, "record_event")));
    return 1;
}

static int stream_equal(lua_State *L)
{
    yoke_stream *a = yl_test_handle(L, 1, &yl_stream_class),
                *b = yl_test_handle(L, 2, &yl_stream_class);
    lua_pushboolean(L, a && b && yoke_stream_equal(a, b) == 1);
    return 1;
}

static int stream_tostring(lua_State *L)
{
    yoke_stream **box = luaL_checkudata(L, 1, yl_stream_class.name);
    if (*box)
        lua_pushfstring(L, "stream of %s (%p)", yoke_device_spec(yoke_stream_device(*box)),
                        yoke_stream_handle(*box));
    else
        lua_pushliteral(L, "stream (closed)");
    return 1;
}

/* Implements s.handle, s.device and the methods. Raises for other names. Upvalues: the Binding, the table of methods.
 * */
static int stream_index(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *name = yl_key(L, 2);
    if (!strcmp(name, "handle")) {
        lua_pushinteger(L, (lua_Integer)(intptr_t)yoke_stream_handle(self_stream(L, name)));
    } else if (!strcmp(name, "device")) {
        yl_push_device(L, b, yoke_stream_device(self_stream(L, name)));
    } else {
        lua_pushvalue(L, 2);
        if (lua_rawget(L, lua_upvalueindex(2)) == LUA_TNIL)
            return yl_raise(L, b, YOKE_E_VALUE, "stream", "a stream has no field or method '%s'",
                            yl_show(L, 2));
    }
    return 1;
}

/* ---- Events ------------------------------------------------------------------------------------------ */

/* Implements yoke.Event(timing) and yoke.Event{timing =}. */
static int make_event(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "Event", 0, 1);
    lua_settop(L, 1);
    if (lua_istable(L, 1)) {
        static const char *const kNames[] = {"timing"};
        yl_push_named(L, b, 1, "Event", kNames, 1, "Event(timing)");
        lua_replace(L, 1);
    }
    const int timing = lua_isnil(L, 1) ? 0 : yl_bool_arg(L, b, 1, "Event", "timing");
    yl_check(L, b, yoke_event_create(timing, yl_push_handle(L, &kEvent)));
    return 1;
}

static int event_record(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "record", "stream"};
    yoke_stream *stream = lua_isnoneornil(L, 2) ? NULL : yl_need_stream(L, target, 2);
    yoke_event *event = self_event(L, "record");
    const Modes outer = yl_enter(L, b);
    yl_leave_checked(L, b, outer, yoke_event_record(event, stream));
    return 0;
}

/* Implements e:wait(stream): makes the stream, by default the current stream, go on only after the event. */
static int event_wait(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "wait", "stream"};
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        yoke_stream **box = yl_push_handle(L, &yl_stream_class);
        const Modes outer = yl_enter(L, b);
        yl_leave_checked(L, b, outer, yoke_current_stream(NULL, box));
        lua_replace(L, 2);
    }
    yoke_stream *stream = yl_need_stream(L, target, 2);
    yl_check(L, b, yoke_stream_wait_event(stream, self_event(L, "wait")));
    return 0;
}

static int event_query(lua_State *L)
{
    int32_t reached = 0;
    yl_check(L, yl_binding(L), yoke_event_query(self_event(L, "query"), &reached));
    lua_pushboolean(L, reached);
    return 1;
}

static int event_synchronize(lua_State *L)
{
    yl_check(L, yl_binding(L), yoke_event_synchronize(self_event(L, "synchronize")));
    return 0;
}

/* Returns to the script the milliseconds from this event to another. */
static int event_elapsed_time(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "elapsed_time", "end"};
    self_event(L, "elapsed_time");
    yoke_event *end = yl_need_handle(L, target, 2, &kEvent);
    double seconds = 0;
    yl_check(L, b, yoke_event_elapsed(self_event(L, "elapsed_time"), end, &seconds));
    lua_pushnumber(L, seconds * 1e3);
    return 1;
}

/* ---- Tensors ----------------------------------------------------------------------------------------- */

static int record_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "record_stream", "stream"};
    yl_tensor_arg(L, b, 1, "record_stream", "self");
    yoke_stream *stream = yl_need_stream(L, target, 2);
    yl_check(L, b,
             yoke_tensor_record_stream(yl_tensor_arg(L, b, 1, "record_stream", "self"), stream));
    return 0;
}

static int record_use(lua_State *L)
{
    Binding *b = yl_binding(L);
    const Target target = {b, "record_use", "event"};
    yl_tensor_arg(L, b, 1, "record_use", "self");
    yoke_event *event = yl_need_handle(L, target, 2, &kEvent);
    yl_check(L, b, yoke_tensor_record_use(yl_tensor_arg(L, b, 1, "record_use", "self"), event));
    return 0;
}

static int pin_memory(lua_State *L)
{
    Binding *b = yl_binding(L);
    lua_settop(L, 1); /* the result must not become 'self' */
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_tensor *tensor = yl_tensor_arg(L, b, 1, "pin_memory", "self");
    YL_CALL(L, b, tensor, yoke_tensor_pin_memory(tensor, box));
    yl_count(L, b, *box, tensor);
    return 1;
}

static int is_pinned(lua_State *L)
{
    yoke_tensor *tensor = yl_tensor_arg(L, yl_binding(L), 1, "is_pinned", "self");
    lua_pushboolean(L, yoke_tensor_is_pinned(tensor) == 1);
    return 1;
}

static void open_classes(lua_State *L, Binding *b)
{
    static const luaL_Reg stream_methods[] = {
        {"synchronize", stream_synchronize},   {"query", stream_query},
        {"wait_event", stream_wait_event},     {"wait_stream", stream_wait_stream},
        {"record_event", stream_record_event}, {NULL, NULL}};
    static const luaL_Reg event_methods[] = {{"record", event_record},
                                             {"wait", event_wait},
                                             {"query", event_query},
                                             {"synchronize", event_synchronize},
                                             {"elapsed_time", event_elapsed_time},
                                             {NULL, NULL}};
    static const luaL_Reg stream_events[] = {{"__index", stream_index},
                                             {"__eq", stream_equal},
                                             {"__tostring", stream_tostring},
                                             {NULL, NULL}};
    yl_open_class(L, b, &yl_stream_class, stream_methods, stream_events);
    yl_open_class(L, b, &kEvent, event_methods, NULL);
}

void yl_open_stream(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"Stream", make_stream},
                                         {"Event", make_event},
                                         {"wrap_stream", wrap_stream},
                                         {"current_stream", current_stream},
                                         {NULL, NULL}};
    static const luaL_Reg tensor_methods[] = {{"record_stream", record_stream},
                                              {"record_use", record_use},
                                              {"pin_memory", pin_memory},
                                              {"is_pinned", is_pinned},
                                              {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_set_tensor_methods(L, b, tensor_methods);
    open_classes(L, b);
}
