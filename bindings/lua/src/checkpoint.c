/* Scopes whose activations are made again, yoke.checkpoint_scope and yoke.checkpoint, and yoke.MemoryBudget, over
 * yoke/checkpoint.h. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/scope.h"

#include <stdio.h>
#include <string.h>

static void release_budget(void *budget)
{
    yoke_memory_budget_release(budget);
}

static const YlClass kBudget = {"yoke.MemoryBudget", "a MemoryBudget", NULL, release_budget, 0};

/* Implements yoke.MemoryBudget(amount): makes a budget from a number or a text with a unit. */
static int make_budget(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "MemoryBudget", 1, 1);
    char number[400]; /* large enough for any double without an exponent */
    const char *amount = number;
    if (lua_type(L, 1) == LUA_TNUMBER) {
        snprintf(number, sizeof number, "%.15g", (double)lua_tonumber(L, 1));
        if (strchr(number, 'e'))
            snprintf(number, sizeof number, "%.25f", (double)lua_tonumber(L, 1));
    } else {
        amount = yl_string_arg(L, b, 1, "MemoryBudget", "amount");
    }
    yoke_memory_budget **box = yl_push_handle(L, &kBudget);
    yl_check(L, b, yoke_memory_budget_create(amount, box));
    return 1;
}

/* Implements budget:report(): returns a table of the budget's figures. */
static int report_budget(lua_State *L)
{
    Binding *b = yl_binding(L);
    yoke_memory_budget_figures it = {.struct_size = sizeof it};
    yl_check(L, b, yoke_memory_budget_report(yl_need_self(L, &kBudget, "report"), &it));
    lua_createtable(L, 0, 11);
    yl_set_integer(L, "steps", it.steps);
    yl_set_integer(L, "forwards", it.forwards);
    yl_set_integer(L, "cuts", it.cuts);
    yl_set_integer(L, "limit", it.limit);
    yl_set_integer(L, "plain_peak", it.plain_peak);
    yl_set_integer(L, "held", it.held_bytes[0]);
    yl_set_integer(L, "measured_held", it.held_bytes[1]);
    yl_set_integer(L, "peak", it.peak_bytes[0]);
    yl_set_integer(L, "measured_peak", it.peak_bytes[1]);
    yl_set_number(L, "seconds", it.seconds[0]);
    yl_set_number(L, "measured_seconds", it.seconds[1]);
    return 1;
}

/* Raises for an unknown option name. */
static void check_option_names(lua_State *L, Binding *b, const char *call)
{
    static const char *const names[] = {"policy", "offload"};
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
        const char *name = yl_key(L, -2);
        if (yl_find_name(name, names, 2) == 2)
            yl_raise(L, b, YOKE_E_VALUE, call,
                     "there is no option '%s'%s; the options are policy and offload", name,
                     yl_meant(L, name, names, 2));
    }
}

/* Reads the list of ops on the top, and pushes the memory of their names for C. */
static void read_ops(lua_State *L, Binding *b, const char *call, yoke_checkpoint_options *options)
{
    const int list = lua_gettop(L);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    const char **names = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *names, 0);
    for (lua_Integer i = 0; i < count; ++i, lua_pop(L, 1)) {
        if (lua_rawgeti(L, list, i + 1) != LUA_TSTRING)
            yl_raise(L, b, YOKE_E_TYPE, call,
                     "option 'policy' has a %s at place %I; it takes names of ops",
                     luaL_typename(L, -1), i + 1);
        names[i] = lua_tostring(L, -1); /* held by the list */
    }
    options->policy = "ops";
    options->ops = names;
    options->op_count = count;
}

/* Returns the options in the table at 1, or defaults without a table, for the scope on the top. Memory behind their
 * pointers stays on the stack. */
static yoke_checkpoint_options read_options(lua_State *L, Binding *b, const char *call,
                                            Scope *scope)
{
    const int box = lua_gettop(L);
    yoke_checkpoint_options options = {.struct_size = sizeof options};
    if (lua_isnoneornil(L, 1)) return options;
    luaL_checkstack(L, 8, call);
    if (lua_type(L, 1) != LUA_TTABLE)
        yl_wrong_type(L, (Target){b, call, "options"}, 1, "a table such as {policy = ...}");
    check_option_names(L, b, call);
    if (lua_getfield(L, 1, "offload") != LUA_TNIL && !lua_isboolean(L, -1))
        yl_raise(L, b, YOKE_E_TYPE, call, "option 'offload' is a %s; it takes true or false",
                 luaL_typename(L, -1));
    options.offload = lua_toboolean(L, -1);
    lua_pop(L, 1);
    const int type = lua_getfield(L, 1, "policy");
    if ((options.budget = yl_test_handle(L, -1, &kBudget)))
        options.policy = "budget";
    else if (type == LUA_TTABLE)
        read_ops(L, b, call, &options);
    else if (type == LUA_TSTRING)
        options.policy = yl_string_arg(L, b, -1, call, "policy");
    else if (type == LUA_TFUNCTION)
        yl_scope_policy(L, b, scope, box, &options);
    else if (type != LUA_TNIL)
        yl_raise(
            L, b, YOKE_E_TYPE, call,
            "option 'policy' is a %s; it takes \"full\", \"matmul\", a list of ops, a function or a MemoryBudget",
            lua_typename(L, type));
    if (type == LUA_TSTRING &&
        (!strcmp(options.policy, "ops") || !strcmp(options.policy, "function") ||
         !strcmp(options.policy, "budget")))
        yl_raise(
            L, b, YOKE_E_VALUE, call,
            "option 'policy' is '%s'; give the list of ops itself, such as {\"gelu\"}, the function, or a MemoryBudget",
            options.policy);
    return options;
}

/* Pushes an open scope within the running coroutine's scope. */
static void push_checkpoint(lua_State *L, Binding *b, const char *call)
{
    Scope *scope = yl_push_scope(L, b);
    const int place = lua_gettop(L);
    const yoke_checkpoint_options options = read_options(L, b, call, scope);
    yoke_checkpoint *made = NULL;
    const Modes outer = yl_enter(L, b);
    yoke_checkpoint *around = yoke_checkpoint_current();
    const yoke_status status = yoke_checkpoint_begin(&options, &made);
    if (!status) yoke_checkpoint_swap(around);
    yl_leave_checked(L, b, outer, status);
    yl_scope_checkpoint(scope, made);
    lua_settop(L, place);
}

/* Implements yoke.checkpoint_scope([options]): returns an open scope. */
static int checkpoint_scope(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "checkpoint_scope", 0, 1);
    lua_settop(L, 1);
    push_checkpoint(L, b, "checkpoint_scope");
    return 1;
}

static int is_callable(lua_State *L, int index)
{
    if (lua_type(L, index) == LUA_TFUNCTION) return 1;
    if (!luaL_getmetafield(L, index, "__call")) return 0;
    lua_pop(L, 1);
    return 1;
}

/* Implements yoke.checkpoint([options,] fn, ...): runs the function in a scope and returns its results. */
static int checkpoint(lua_State *L)
{
    Binding *b = yl_binding(L);
    luaL_checkany(L, 1);
    if (is_callable(L, 1)) {
        lua_pushnil(L);
        lua_insert(L, 1);
    }
    if (!is_callable(L, 2)) {
        const int given = lua_isnoneornil(L, 2) && !lua_istable(L, 1) && !lua_isnil(L, 1) ? 1 : 2;
        return yl_wrong_type(L, (Target){b, "checkpoint", "fn"}, given, "a function to run");
    }
    push_checkpoint(L, b, "checkpoint");
    lua_remove(L, 1);
    return yl_run_in_scope(L);
}

void yl_open_checkpoint(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"checkpoint", checkpoint},
                                         {"checkpoint_scope", checkpoint_scope},
                                         {"MemoryBudget", make_budget},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {{"report", report_budget}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_open_class(L, b, &kBudget, methods, NULL);
}
