/*
 * on_out_of_memory: functions of a script that are asked when a device has no memory left.
 *
 * A registration is a userdata with its function. The registry keeps the userdata until it is removed, or the state is
 * closed.
 */
#include <stdlib.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/memory.h"

static const char kClass[] = "yoke.OutOfMemoryHandle";

/* Function in the library's list. It may outlive the state during a call of another thread. */
typedef struct Asked {
    Binding *binding;
    lua_State *main; /* main coroutine of the function's state */
    int ref;         /* reference of the userdata in the registry */
} Asked;

typedef struct Registration {
    int64_t id; /* 0 after its end */
    int ref;
} Registration;

typedef struct Question {
    const Asked *asked;
    yoke_device *device;
    int64_t bytes;
    int32_t answer;
} Question;

/* Calls the function of a Question, a light userdata. */
static int call_function(lua_State *L)
{
    Question *question = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, question->asked->ref);
    lua_getiuservalue(L, -1, 1);
    yl_push_device(L, question->asked->binding, question->device);
    lua_pushinteger(L, question->bytes);
    lua_call(L, 2, 1);
    question->answer = lua_toboolean(L, -1);
    return 0;
}

/* Returns a raised value, such as an error object, as text. Message handler of ask_function. */
static int to_text(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

static void warn_of(lua_State *L)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_warning(L, "yoke: error in a function of on_out_of_memory (", 1);
    lua_warning(L, text ? text : "an error that is not a text", 1);
    lua_warning(L, ")", 0);
}

/* Returns the main coroutine of a state; NULL without memory. */
static lua_State *main_of(lua_State *L)
{
    if (!lua_checkstack(L, 4)) return NULL;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *const main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main;
}

/* Calls the function and returns its answer, only for memory requests of its own state, because another state may run
 * in another thread. After an error, logs a warning and returns 0. */
static int32_t ask_function(void *user, yoke_device *device, int64_t bytes)
{
    lua_State *const L = yl_relieved();
    Question question = {user, device, bytes, 0};
    if (!L || main_of(L) != question.asked->main) return 0;
    lua_State *const outer = yl_begin_relief(NULL);
    lua_pushcfunction(L, to_text);
    lua_pushcfunction(L, call_function);
    lua_pushlightuserdata(L, &question);
    if (lua_pcall(L, 1, 0, -3)) {
        warn_of(L);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    yl_end_relief(outer);
    return question.answer;
}

/* Implements handle:remove(), __close and __gc: removes the function, once. */
static int remove_registration(lua_State *L)
{
    Registration *self = yl_need_object(L, yl_binding(L), kClass, "remove", "a handle");
    const int64_t id = self->id;
    self->id = 0;
    if (!id) return 0;
    yoke_remove_on_out_of_memory(id);
    luaL_unref(L, LUA_REGISTRYINDEX, self->ref);
    return 0;
}

/* Implements yoke.on_out_of_memory(fn): returns a handle with remove(). */
static int on_out_of_memory(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "on_out_of_memory", 1, 1);
    if (!lua_isfunction(L, 1))
        yl_wrong_type(L, (Target){b, "on_out_of_memory", "fn"}, 1, "a function");
    Registration *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (Registration){0, LUA_NOREF};
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, kClass);
    lua_pushvalue(L, -1);
    self->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    Asked *asked = malloc(sizeof *asked);
    if (asked) *asked = (Asked){b, main_of(L), self->ref};
    if (!asked || yoke_on_out_of_memory(ask_function, asked, free, &self->id)) {
        luaL_unref(L, LUA_REGISTRYINDEX, self->ref);
        if (!asked) return yl_raise(L, b, YOKE_E_OOM, "on_out_of_memory", "no memory for it");
        free(asked);
        return yl_raise_last(L, b);
    }
    return 1;
}

void yl_open_relief(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"on_out_of_memory", on_out_of_memory}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"remove", remove_registration}, {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__close", remove_registration}, {"__gc", remove_registration}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_registration(L, b, kClass, methods, events);
}
