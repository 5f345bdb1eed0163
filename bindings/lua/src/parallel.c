/* Reducers and samplers, of yoke/parallel.h; yoke/parallel.lua and yoke/sampler.lua have the script's interface. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/interrupt.h"
#include "bindings/lua/src/values/convert.h"
#include "bindings/lua/src/values/handles.h"

#include "yoke/parallel.h"

static void release_reducer(void *reducer)
{
    yoke_reducer_release(reducer);
}

static void release_sampler(void *sampler)
{
    yoke_sampler_release(sampler);
}

static const YlClass kReducer = {"yoke.core.Reducer", "a reducer", "a closed reducer",
                                 release_reducer, 0};
static const YlClass kSampler = {"yoke.DistributedSampler", "a sampler", "a closed sampler",
                                 release_sampler, 0};

/* ---- Gradients ------------------------------------------------------------------------------------------------ */

static const char kCall[] = "DistributedDataParallel";

/* Returns the texts of the list at `index`; they live as long as the list. */
static const char *const *texts(lua_State *L, int index)
{
    const lua_Integer count = luaL_len(L, index);
    const char **all = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *all, 0);
    for (lua_Integer i = 0; i < count; ++i) {
        lua_rawgeti(L, index, i + 1);
        all[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return all;
}

/* Implements _reducer(group, params, names, buffers, buffer_names, bucket_mb, compression, reduce_dtype): returns a
 * reducer. The lists are yoke/parallel.lua's. */
static int make_reducer(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_group *group = yl_need_handle(L, (Target){b, kCall, "group"}, 1, &yl_group_class);
    yoke_reducer_options options = {.struct_size = sizeof options};
    options.bucket_mb = yl_number_arg(L, b, 6, kCall, "bucket_mb");
    if (options.bucket_mb == 0) /* 0 means the default in C */
        yl_raise(
            L, b, YOKE_E_VALUE, kCall,
            "argument 'bucket_mb' is 0; it takes the MiB of a bucket, above 0 and up to 1e+06");
    if (!lua_isnil(L, 7)) options.compression = yl_string_arg(L, b, 7, kCall, "compression");
    options.reduce_dtype = yl_need_dtype(L, (Target){b, kCall, "reduce_dtype"}, 8);
    const char *const *names = texts(L, 3), *const *buffer_names = texts(L, 5);
    const yoke_arg params = yl_tensors_arg(L, (Target){b, kCall, "module"}, 2);
    const yoke_arg buffers = yl_tensors_arg(L, (Target){b, kCall, "module"}, 4);
    yoke_reducer **box = yl_push_handle(L, &kReducer);
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status =
        yoke_reducer_create(group, params.v.tensors, names, params.count, buffers.v.tensors,
                            buffer_names, buffers.count, &options, box);
    yl_end_wait(&wait);
    yl_check(L, b, status);
    return 1;
}

/* Implements reducer:sync([is_on]): sets the setting if given, and returns it. */
static int sync(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, "no_sync");
    if (!lua_isnoneornil(L, 2))
        yl_check(L, b, yoke_reducer_set_sync(reducer, yl_bool_arg(L, b, 2, "no_sync", "is_on")));
    lua_pushboolean(L, yoke_reducer_get_sync(reducer) == 1);
    return 1;
}

static int set_weight(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, "set_weight");
    yl_check(L, b, yoke_reducer_set_weight(reducer, yl_number_arg(L, b, 2, "set_weight", "n")));
    return 0;
}

/* Implements reducer:check(): returns the number of a forward that begins now. */
static int check(lua_State *L)
{
    Binding *b = yl_binding(L);
    uint64_t forward = 0;
    yl_check(L, b, yoke_reducer_check(yl_need_self(L, &kReducer, "forward"), &forward));
    lua_pushinteger(L, (lua_Integer)forward);
    return 1;
}

/* Implements reducer:tie(list, forward): returns for each tensor its replacement, or false. */
static int tie(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, "forward");
    const yoke_arg outputs = yl_tensors_arg(L, (Target){b, kCall, "outputs"}, 2);
    const uint64_t forward = (uint64_t)luaL_checkinteger(L, 3);
    yoke_tensor **tied = lua_newuserdatauv(L, ((size_t)outputs.count + 1) * sizeof *tied, 0);
    /* Before there are references that an error would lose. */
    lua_createtable(L, (int)outputs.count, 0);
    for (int i = 0; i < outputs.count; ++i) {
        yl_new_tensor(L, b);
        lua_rawseti(L, -2, i + 1);
    }
    yl_check(L, b, yoke_reducer_tie(reducer, forward, outputs.v.tensors, outputs.count, tied));
    for (int i = 0; i < outputs.count; ++i) {
        lua_rawgeti(L, -1, i + 1);
        *yl_test_tensor(L, b, -1) = tied[i];
        lua_pop(L, 1);
        if (tied[i]) continue;
        lua_pushboolean(L, 0);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static int state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, "comm_state");
    yl_check(L, b, yoke_reducer_state(reducer, yl_push_state(L)));
    return 1;
}

static int load_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, "load_comm_state");
    yl_check(L, b,
             yoke_reducer_load_state(reducer, yl_need_state(L, b, 2, "load_comm_state", "state")));
    return 0;
}

/* Implements reducer:regroup(group, state or nil): returns a state, or false if no state was given. */
static int regroup(lua_State *L)
{
    static const char call[] = "regroup";
    Binding *b = yl_binding(L);
    yoke_reducer *reducer = yl_need_self(L, &kReducer, call);
    yoke_group *group = yl_need_handle(L, (Target){b, call, "group"}, 2, &yl_group_class);
    yoke_state *mine = lua_isnoneornil(L, 3) ? NULL : yl_need_state(L, b, 3, call, "objects");
    yoke_state **furthest = yl_push_state(L);
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status = yoke_reducer_regroup(reducer, group, mine, furthest);
    yl_end_wait(&wait);
    yl_check(L, b, status);
    if (!*furthest) lua_pushboolean(L, 0);
    return 1;
}

/* ---- Examples ------------------------------------------------------------------------------------------------- */

static int32_t rank_arg(lua_State *L, Binding *b, int index, const char *name)
{
    const int64_t number = yl_int_arg(L, b, index, "DistributedSampler", name);
    if (number != (int32_t)number)
        yl_raise(L, b, YOKE_E_VALUE, "DistributedSampler",
                 "argument '%s' is %I; it must fit in 32 bits", name, (LUAI_UACINT)number);
    return (int32_t)number;
}

/* Implements _sampler(n, rank, world_size, shuffle, seed, drop_last, pad, shares): returns a sampler. The list
 * `shares`, or nil, is yoke/sampler.lua's. */
static int make_sampler(lua_State *L)
{
    static const char call[] = "DistributedSampler";
    Binding *b = yl_binding(L);
    yoke_sampler_options options = {.struct_size = sizeof options};
    options.count = yl_int_arg(L, b, 1, call, "n");
    options.rank = rank_arg(L, b, 2, "rank");
    options.world_size = rank_arg(L, b, 3, "world_size");
    options.no_shuffle = !yl_bool_arg(L, b, 4, call, "shuffle");
    options.seed = yl_int_arg(L, b, 5, call, "seed");
    options.drop_last = yl_bool_arg(L, b, 6, call, "drop_last");
    options.no_pad = !yl_bool_arg(L, b, 7, call, "pad");
    if (!lua_isnil(L, 8)) {
        const lua_Integer count = luaL_len(L, 8);
        double *shares = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *shares, 0);
        for (lua_Integer i = 0; i < count; ++i) {
            lua_rawgeti(L, 8, i + 1);
            shares[i] = yl_number_arg(L, b, -1, call, "shares");
            lua_pop(L, 1);
        }
        options.shares = shares;
    }
    yl_check(L, b, yoke_sampler_create(&options, yl_push_handle(L, &kSampler)));
    return 1;
}

static int set_epoch(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sampler *sampler = yl_need_self(L, &kSampler, "set_epoch");
    yl_check(L, b, yoke_sampler_set_epoch(sampler, yl_int_arg(L, b, 2, "set_epoch", "epoch")));
    return 0;
}

static int begin(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_check(L, b, yoke_sampler_begin(yl_need_self(L, &kSampler, "indices")));
    return 0;
}

/* Implements sampler:next(): returns an index, or nil at the end of the pass. */
static int next(lua_State *L)
{
    Binding *b = yl_binding(L);
    int64_t index = 0;
    yl_check(L, b, yoke_sampler_next(yl_need_self(L, &kSampler, "indices"), &index));
    if (index < 0) return 0;
    lua_pushinteger(L, index);
    return 1;
}

static int length(lua_State *L)
{
    lua_pushinteger(L, yoke_sampler_length(yl_need_self(L, &kSampler, "length")));
    return 1;
}

/* Implements sampler:state(): returns epoch and consumed. */
static int sampler_state(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sampler_state now = {.struct_size = sizeof now};
    yl_check(L, b, yoke_sampler_get_state(yl_need_self(L, &kSampler, "state_dict"), &now));
    lua_pushinteger(L, now.epoch);
    lua_pushinteger(L, now.consumed);
    return 2;
}

static int load(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_sampler *sampler = yl_need_self(L, &kSampler, "load_state_dict");
    yoke_sampler_state state = {.struct_size = sizeof state};
    state.epoch = yl_int_arg(L, b, 2, "load_state_dict", "epoch");
    state.consumed = yl_int_arg(L, b, 3, "load_state_dict", "consumed");
    yl_check(L, b, yoke_sampler_load(sampler, &state));
    return 0;
}

static int regroup_sampler(lua_State *L)
{
    static const char call[] = "regroup";
    Binding *b = yl_binding(L);
    yoke_sampler *sampler = yl_need_self(L, &kSampler, call);
    yoke_group *group = yl_need_handle(L, (Target){b, call, "group"}, 2, &yl_group_class);
    YlWait wait;
    yl_begin_wait(L, &wait);
    const yoke_status status = yoke_sampler_regroup(sampler, group);
    yl_end_wait(&wait);
    yl_check(L, b, status);
    return 0;
}

void yl_open_parallel(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"_reducer", make_reducer}, {"_sampler", make_sampler}, {NULL, NULL}};
    static const luaL_Reg of_reducer[] = {
        {"sync", sync},   {"set_weight", set_weight}, {"check", check},     {"tie", tie},
        {"state", state}, {"load_state", load_state}, {"regroup", regroup}, {NULL, NULL}};
    static const luaL_Reg of_sampler[] = {{"set_epoch", set_epoch},
                                          {"begin", begin},
                                          {"next", next},
                                          {"length", length},
                                          {"state", sampler_state},
                                          {"load", load},
                                          {"regroup", regroup_sampler},
                                          {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kReducer, of_reducer, NULL);
    yl_open_class(L, b, &kSampler, of_sampler, NULL);
}
