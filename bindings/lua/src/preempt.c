/*
 * on_preempt: function of a script that runs when a signal asks the process to end, before the signal has its former
 * effect.
 *
 * A registration is a userdata with its function and its own watch (yoke/preempt.h). So all watches of one state, of
 * other states and of the host program answer before the last watch passes the signal on. The registry keeps
 * registrations until they are removed or the state is closed.
 */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/poll.h"

#include "yoke/preempt.h"

static const char kClass[] = "yoke.Preemption";
static const char kAll; /* key of the registrations in the registry, newest last */

typedef struct Preemption {
    int64_t id; /* id of its watch; 0 after its end */
    int is_running;
    int is_held;    /* within a step: its function waits */
    int is_removed; /* removed by its own, still running function */
} Preemption;

/* Ends the registration's watch, if there is one. In a forked child the watch is unknown, so its end has no effect. */
static void end_watch(Preemption *self)
{
    const int64_t id = self->id;
    self->id = 0;
    if (id) yoke_preempt_unwatch(id);
}

/* Takes the registration at `index` out of the list. */
static void forget(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kAll);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1, kept = 1; i <= count; ++i) {
        lua_rawgeti(L, -1, i);
        const int stays = !lua_rawequal(L, -1, index);
        lua_pushnil(L);
        lua_rawseti(L, -3, i);
        if (stays)
            lua_rawseti(L, -2, kept++);
        else
            lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void end_registration(lua_State *L, int index, Preemption *self)
{
    if (!self->id) return;
    forget(L, index);
    end_watch(self);
}

/* Implements handle:remove() and __close: ends the registration, or, while its function runs, after the function. */
static int remove_registration(lua_State *L)
{
    Preemption *self = yl_need_object(L, yl_binding(L), kClass, "remove", "a handle");
    if (self->is_running)
        self->is_removed = 1; /* an end now would pass on the signal before the answer */
    else
        end_registration(L, 1, self);
    return 0;
}

/* Implements handle:hold(): delays a signal. Its function does not run, and its former effect waits. */
static int hold(lua_State *L)
{
    Preemption *self = yl_need_object(L, yl_binding(L), kClass, "hold", "a handle");
    self->is_held = 1;
    return 0;
}

/* Implements handle:release(): the next poll runs waiting functions. */
static int release(lua_State *L)
{
    Preemption *self = yl_need_object(L, yl_binding(L), kClass, "release", "a handle");
    self->is_held = 0;
    return 0;
}

/* Ends a registration when the state closes. A function that ends the program, by os.exit(code, true), has chosen
 * how, so its signal is cleared. */
static int close_registration(lua_State *L)
{
    Preemption *self = luaL_checkudata(L, 1, kClass);
    if (self->is_running) yoke_preempt_clear(self->id);
    end_watch(self);
    return 0;
}

/* ---- Due --------------------------------------------------------------------------------------------------- */

/* Pushes the newest registration of the list on the top with a signal. Returns 0 if there is none, or if a function
 * runs already and has called poll. */
static int push_told(lua_State *L)
{
    const int list = lua_gettop(L);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    for (lua_Integer i = 1; i <= count; ++i) {
        lua_rawgeti(L, list, i);
        const Preemption *each = lua_touserdata(L, -1);
        lua_pop(L, 1);
        if (each->is_running) return 0;
    }
    for (lua_Integer i = count; i >= 1; --i) {
        lua_rawgeti(L, list, i);
        const Preemption *each = lua_touserdata(L, -1);
        if (!each->is_held && yoke_preempt_signal(each->id)) return 1;
        lua_pop(L, 1);
    }
    return 0;
}

/* Runs the function of the registration on the top, and answers the signal, which may end the process. After an
 * error, clears the signal, ends the registration and raises the error. */
static void run_registration(lua_State *L)
{
    const int index = lua_gettop(L);
    Preemption *self = lua_touserdata(L, index);
    lua_getiuservalue(L, index, 1);
    self->is_running = 1;
    const int failed = lua_pcall(L, 0, 0, 0);
    self->is_running = 0;
    if (failed) {
        yoke_preempt_clear(self->id);
        end_registration(L, index, self);
        lua_error(L);
    }
    yoke_preempt_resume(self->id);
    if (self->is_removed) end_registration(L, index, self);
}

static int run_told(lua_State *L, Binding *b)
{
    int count = 0;
    (void)b;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kAll);
    for (; push_told(L); ++count, lua_pop(L, 1)) run_registration(L);
    lua_pop(L, 1);
    return count;
}

/* ---- Registration ------------------------------------------------------------------------------------------ */

/* Returns the names at `index`, a string or a list of strings, in memory that it pushes; *count receives their
 * number. Raises for an empty list, and for other values. */
static const char **push_signals(lua_State *L, Binding *b, int index, int64_t *count)
{
    const Target target = {b, "on_preempt", "signals"};
    const int is_list = lua_istable(L, index);
    const size_t length = is_list ? (size_t)lua_rawlen(L, index) : 1;
    if (!length)
        yl_raise(L, b, YOKE_E_VALUE, "on_preempt",
                 "argument 'signals' names no signal; give a list such as {\"TERM\", \"USR1\"}");
    const char **names = lua_newuserdatauv(L, length * sizeof *names, 0);
    for (size_t i = 0; i < length; ++i) {
        if (is_list)
            lua_rawgeti(L, index, (lua_Integer)i + 1);
        else
            lua_pushvalue(L, index);
        if (lua_type(L, -1) != LUA_TSTRING)
            yl_wrong_type(L, target, -1, "a name such as \"TERM\", or a list of names");
        names[i] = yl_need_text(L, target, lua_gettop(L));
        lua_pop(L, 1); /* held by the argument */
    }
    *count = (int64_t)length;
    return names;
}

/* Adds the registration on the top to the list. */
static void keep(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kAll);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

/* Implements yoke.on_preempt(fn, {signals = {"TERM"}}): returns a handle with remove(), hold() and release(). */
static int on_preempt(lua_State *L)
{
    static const char *const kNames[] = {"signals"};
    static const char kSignature[] = "on_preempt(fn, {signals = {\"TERM\"}})";
    Binding *b = yl_binding(L);
    const char **names = NULL;
    int64_t count = 0;
    yl_arg_count(L, b, "on_preempt", 1, 2);
    lua_settop(L, 2);
    if (!lua_isfunction(L, 1)) yl_wrong_type(L, (Target){b, "on_preempt", "fn"}, 1, "a function");
    if (!lua_isnil(L, 2)) {
        if (!lua_istable(L, 2))
            yl_wrong_type(L, (Target){b, "on_preempt", "options"}, 2,
                          "a table such as {signals =}");
        yl_check_keywords(L, b, 2, "on_preempt", kNames, 1, kSignature);
        if (lua_getfield(L, 2, "signals") != LUA_TNIL) names = push_signals(L, b, 3, &count);
    }
    Preemption *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (Preemption){0};
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, kClass);
    keep(L); /* first, because this call may raise */
    if (yoke_preempt_add(names, count, &self->id)) {
        forget(L, -1);
        return yl_raise_last(L, b);
    }
    return 1;
}

void yl_open_preempt(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"on_preempt", on_preempt}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"remove", remove_registration}, {"hold", hold}, {"release", release}, {NULL, NULL}};
    static const luaL_Reg events[] = {
        {"__close", remove_registration}, {"__gc", close_registration}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_registration(L, b, kClass, methods, events);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kAll);
    yl_on_poll(b, run_told);
}
