/* The library itself: version, configuration, random seed, threads, shutdown, files, a clock. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */

#include <time.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/relief.h"
#include "bindings/lua/src/values/pressure.h"

static int build_info(lua_State *L)
{
    lua_pushstring(L, yoke_build_info());
    return 1;
}

static int config_set(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *key = yl_string_arg(L, b, 1, "config_set", "key");
    const char *value =
        lua_isnoneornil(L, 2) ? NULL : yl_string_arg(L, b, 2, "config_set", "value");
    yl_check(L, b, yoke_config_set(key, value));
    return 0;
}

static int config_get(lua_State *L)
{
    Binding *b = yl_binding(L);
    const char *value = NULL;
    yl_check(L, b, yoke_config_get(yl_string_arg(L, b, 1, "config_get", "key"), &value));
    lua_pushstring(L, value); /* nil for NULL */
    return 1;
}

/* Implements yoke.shutdown(timeout = 10): ends the library's work within the seconds, or raises. */
static int shutdown(lua_State *L)
{
    Binding *b = yl_binding(L);
    const double timeout =
        lua_isnoneornil(L, 1) ? 10 : yl_number_arg(L, b, 1, "shutdown", "timeout");
    yl_check(L, b, yoke_shutdown(timeout));
    return 0;
}

static int manual_seed(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_manual_seed((uint64_t)yl_int_arg(L, b, 1, "manual_seed", "seed")));
    return 0;
}

/* Implements core.get_rng_state(): returns seed and offset. */
static int get_rng_state(lua_State *L)
{
    uint64_t seed = 0, offset = 0;
    yl_check(L, yl_binding(L), yoke_get_rng_state(&seed, &offset));
    lua_pushinteger(L, (lua_Integer)seed);
    lua_pushinteger(L, (lua_Integer)offset);
    return 2;
}

/* Implements core.set_rng_state(seed, offset). */
static int set_rng_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    const uint64_t seed = (uint64_t)yl_int_arg(L, b, 1, "Generator", "seed");
    const uint64_t offset = (uint64_t)yl_int_arg(L, b, 2, "Generator", "offset");
    yl_check(L, b, yoke_set_rng_state(seed, offset));
    return 0;
}

/* Implements core.new_stream(): returns the memory of a generator. */
static int new_stream(lua_State *L)
{
    *(yoke_generator *)lua_newuserdatauv(L, sizeof(yoke_generator), 0) = (yoke_generator){0, 0};
    return 1;
}

static yoke_generator *stream_arg(lua_State *L)
{
    yoke_generator *stream = lua_touserdata(L, 1);
    if (!stream || lua_rawlen(L, 1) != sizeof *stream)
        yl_raise(L, yl_binding(L), YOKE_E_TYPE, "Generator",
                 "argument 'stream' is %s; it takes a result of new_stream",
                 luaL_tolstring(L, 1, NULL));
    return stream;
}

/* Implements core.stream_place(stream): returns seed and offset. */
static int stream_place(lua_State *L)
{
    const yoke_generator *stream = stream_arg(L);
    lua_pushinteger(L, (lua_Integer)stream->seed);
    lua_pushinteger(L, (lua_Integer)stream->offset);
    return 2;
}

/* Implements core.set_stream(stream, seed, offset). */
static int set_stream(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_generator *stream = stream_arg(L);
    stream->seed = (uint64_t)yl_int_arg(L, b, 2, "Generator", "seed");
    stream->offset = (uint64_t)yl_int_arg(L, b, 3, "Generator", "offset");
    return 0;
}

/* Implements core.clock(): returns the seconds of a clock that only goes forward. */
static int monotonic_clock(lua_State *L)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec * 1e-9);
    return 1;
}

static int set_num_threads(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t count = yl_int_arg(L, b, 1, "set_num_threads", "n");
    if (count < 0 || count > INT32_MAX)
        return yl_raise(L, b, YOKE_E_VALUE, "set_num_threads",
                        "argument 'n' is %I; give 1 or more, or 0 for the default",
                        (lua_Integer)count);
    yl_check(L, b, yoke_set_num_threads((int32_t)count));
    return 0;
}

static int get_num_threads(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t count = yoke_get_num_threads();
    if (count < 0) return yl_raise_last(L, b);
    lua_pushinteger(L, count);
    return 1;
}

static int set_allow_tf32(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_set_allow_tf32(yl_bool_arg(L, b, 1, "backends", "allow_tf32")));
    return 0;
}

static int get_allow_tf32(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t allowed = yoke_get_allow_tf32();
    if (allowed < 0) return yl_raise_last(L, b);
    lua_pushboolean(L, allowed);
    return 1;
}

static int use_deterministic_algorithms(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b,
             yoke_use_deterministic_algorithms(
                 yl_bool_arg(L, b, 1, "use_deterministic_algorithms", "mode")));
    return 0;
}

static int are_deterministic_algorithms_enabled(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int32_t enabled = yoke_are_deterministic_algorithms_enabled();
    if (enabled < 0) return yl_raise_last(L, b);
    lua_pushboolean(L, enabled);
    return 1;
}

/* The names of YOKE_CUDNN_*, in their order. */
static const char *const cudnn_names[YOKE_CUDNN_SETTING_COUNT] = {
    "enabled", "benchmark", "benchmark_limit", "deterministic", "workspace_limit"};

static int is_cudnn_limit(int setting)
{
    return setting == YOKE_CUDNN_BENCHMARK_LIMIT || setting == YOKE_CUDNN_WORKSPACE_LIMIT;
}

static int cudnn_setting(lua_State *L, Binding *b)
{
    const char *name = yl_key(L, 1);
    const int setting = yl_find_name(name, cudnn_names, YOKE_CUDNN_SETTING_COUNT);
    if (setting == YOKE_CUDNN_SETTING_COUNT)
        yl_raise(
            L, b, YOKE_E_VALUE, "backends.cudnn",
            "there is no setting '%s'; the settings are enabled, benchmark, benchmark_limit, deterministic and workspace_limit",
            name);
    return setting;
}

/* Implements core.cudnn_set(name, value): a limit is an integer, any other setting a boolean. */
static int cudnn_set(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int setting = cudnn_setting(L, b);
    const char *name = cudnn_names[setting];
    yl_check(L, b,
             yoke_cudnn_set(setting, is_cudnn_limit(setting)
                                         ? yl_int_arg(L, b, 2, "backends.cudnn", name)
                                         : yl_bool_arg(L, b, 2, "backends.cudnn", name)));
    return 0;
}

/* Implements core.cudnn_get(name): returns an integer for a limit, a boolean for any other setting. */
static int cudnn_get(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int setting = cudnn_setting(L, b);
    int64_t value = 0;
    yl_check(L, b, yoke_cudnn_get(setting, &value));
    if (is_cudnn_limit(setting))
        lua_pushinteger(L, value);
    else
        lua_pushboolean(L, value != 0);
    return 1;
}

/* Returns cuDNN's version to the script; nil if cuDNN cannot serve. */
static int cudnn_version(lua_State *L)
{
    Binding *b = yl_binding(L);
    const int64_t version = yoke_cudnn_version();
    if (version < 0) return yl_raise_last(L, b);
    if (version > 0)
        lua_pushinteger(L, version);
    else
        lua_pushnil(L);
    return 1;
}

/* Returns to the script why cuDNN cannot serve; nil if cuDNN can serve. */
static int cudnn_why_unavailable(lua_State *L)
{
    const char *why = yoke_cudnn_why_unavailable();
    lua_pushstring(L, *why ? why : NULL);
    return 1;
}

/* Returns the tensor of an IDX file to the script, or nil and why the file cannot be read. */
static int read_idx(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "read_idx", 1, 1);
    const char *path = yl_string_arg(L, b, 1, "read_idx", "path");
    yoke_tensor **box = yl_new_tensor(L, b);
    yoke_status status = yoke_read_idx(path, box);
    if (status == YOKE_E_OOM) {
        lua_State *const outer = yl_begin_relief(L);
        status = yoke_read_idx(path, box);
        yl_end_relief(outer);
    }
    if (status) return yl_nil_error(L, b);
    yl_count(L, b, *box, NULL);
    return 1;
}

/* Implements yoke.ops(): returns {name = {signature =, doc =, family =}} of every op. */
static int ops(lua_State *L)
{
    const int32_t count = yoke_op_count();
    lua_createtable(L, 0, count);
    for (int32_t i = 0; i < count; ++i) {
        const yoke_op *op = yoke_op_info(i);
        lua_createtable(L, 0, 3);
        yl_set_text(L, "signature", op->signature);
        yl_set_text(L, "doc", op->doc);
        yl_set_text(L, "family", op->family);
        lua_setfield(L, -2, op->name);
    }
    return 1;
}

/* Sets yoke.float32 and the other names of dtypes: a dtype in Lua is its name. */
static void set_dtypes(lua_State *L)
{
    for (yoke_dtype dtype = 1; dtype < YOKE_DTYPE_COUNT; ++dtype) {
        lua_pushstring(L, yoke_dtype_name(dtype));
        lua_setfield(L, -2, yoke_dtype_name(dtype));
    }
}

void yl_open_library(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"build_info", build_info},
        {"config_set", config_set},
        {"config_get", config_get},
        {"shutdown", shutdown},
        {"manual_seed", manual_seed},
        {"get_rng_state", get_rng_state},
        {"set_rng_state", set_rng_state},
        {"new_stream", new_stream},
        {"stream_place", stream_place},
        {"set_stream", set_stream},
        {"clock", monotonic_clock},
        {"set_num_threads", set_num_threads},
        {"get_num_threads", get_num_threads},
        {"use_deterministic_algorithms", use_deterministic_algorithms},
        {"are_deterministic_algorithms_enabled", are_deterministic_algorithms_enabled},
        {"set_allow_tf32", set_allow_tf32},
        {"get_allow_tf32", get_allow_tf32},
        {"cudnn_set", cudnn_set},
        {"cudnn_get", cudnn_get},
        {"cudnn_version", cudnn_version},
        {"cudnn_why_unavailable", cudnn_why_unavailable},
        {"read_idx", read_idx},
        {"ops", ops},
        {NULL, NULL}};
    yl_set_functions(L, b, functions);
    set_dtypes(L);
    lua_pushstring(L, yoke_version());
    lua_setfield(L, -2, "version");
}
