/* Jobs: start of their ranks, variables of other libraries, and search for the ranks that block a job. */
#define _POSIX_C_SOURCE 200809L
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/comm.h"

#include <unistd.h>

/* Implements _comm_env(): returns, for each variable, a table with the fields of yoke_comm_variable. */
static int variables(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t count = yoke_comm_variable_count();
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_comm_variable each = {.struct_size = sizeof each};
        yl_check(L, b, yoke_comm_variable_get(i, &each));
        const char *const fields[][2] = {{"name", each.name},
                                         {"value", each.value},
                                         {"effect", each.word},
                                         {"setting", each.setting},
                                         {"text", each.text}};
        lua_createtable(L, 0, 5);
        for (size_t field = 0; field < sizeof fields / sizeof *fields; ++field) {
            lua_pushstring(L, fields[field][1]);
            lua_setfield(L, -2, fields[field][0]);
        }
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* Implements _comm_hang(paths): returns a node of a state, or nil and an error. */
static int hang(lua_State *L)
{
    Binding *b = yl_binding(L);
    luaL_checktype(L, 1, LUA_TTABLE);
    const lua_Unsigned count = lua_rawlen(L, 1);
    const char **paths = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *paths, 0);
    for (lua_Unsigned i = 0; i < count; ++i) {
        lua_rawgeti(L, 1, (lua_Integer)i + 1);
        paths[i] = yl_string_arg(L, b, -1, "hang", "paths");  // kept by the table
        lua_pop(L, 1);
    }
    yoke_state **box = yl_push_state(L);
    const yoke_status status = yoke_comm_hang(paths, (int64_t)count, box);
    if (status == YOKE_E_IO) return yl_nil_error(L, b);
    yl_check(L, b, status);
    return 1;
}

/* Implements _run(command, n, input), where each rank reads `input`: returns exit code, text and trace of the first
 * failed rank, as in yoke_run_result. */
static int run_ranks(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t ranks = yl_int_arg(L, b, 2, "spawn", "n");
    if (ranks < 1 || ranks > YOKE_MAX_RANKS)
        yl_raise(L, b, YOKE_E_VALUE, "spawn", "argument 'n' is %I; it takes 1 to %d",
                 (lua_Integer)ranks, YOKE_MAX_RANKS);
    const lua_Unsigned count = lua_rawlen(L, 1);
    const char **command = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *command, 0);
    for (lua_Unsigned i = 0; i < count; ++i) {
        lua_rawgeti(L, 1, (lua_Integer)i + 1);
        command[i] = luaL_checkstring(L, -1);  // kept by the table
        lua_pop(L, 1);
    }
    command[count] = NULL;
    yoke_run_options options = {
        .struct_size = sizeof options, .ranks = (int32_t)ranks, .command = command};
    size_t bytes = 0;
    options.input = luaL_checklstring(L, 3, &bytes);
    options.input_bytes = bytes;
    yoke_run_result result = {.struct_size = sizeof result};
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status = yoke_run(&options, &result);
    yl_end_wait(&wait);
    yl_check(L, b, status);
    lua_pushinteger(L, result.exit_code);
    lua_pushstring(L, result.text);
    lua_pushstring(L, result.trace);
    return 3;
}

/* Implements _program(): returns the file of the running program, from Linux. */
static int program(lua_State *L)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    lua_pushlstring(L, path, length > 0 ? (size_t)length : 0);
    return 1;
}

void yl_open_jobs(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"_run", run_ranks},
                                         {"_program", program},
                                         {"_comm_hang", hang},
                                         {"_comm_env", variables},
                                         {NULL, NULL}};
    yl_set_functions(L, b, functions);
}
