#include "bindings/lua/src/runtime/code.h"

#include <stdio.h>
#include <stdlib.h>

/* Record that a state shares with the threads that release its functions. Freed with its last user. */
typedef struct Codes {
    YlCode *dropped; /* atomic */
    int users;       /* atomic: the open state, and each record that the library has */
    Binding *binding;
    lua_State *main;
    int has_sentinel; /* an object whose finalizer runs in each collection */
} Codes;

struct YlCode {
    Codes *codes;
    YlCode *next; /* in the list of dropped records */
    int ref;      /* in the registry */
};

static const char kCodes; /* registry key of the state's Codes */
static __thread YlWalk *walking;
static __thread char problem[1024];

void yl_begin_walk(lua_State *L, YlWalk *walk)
{
    *walk = (YlWalk){walking, L, 0};
    walking = walk;
}

void yl_end_walk(const YlWalk *walk)
{
    walking = walk->outer;
}

void yl_check_walk(lua_State *L, Binding *b, const YlWalk *walk, yoke_status status)
{
    if (walk->failed) lua_error(L);
    yl_check(L, b, status);
}

static void let_go(Codes *codes)
{
    if (__atomic_sub_fetch(&codes->users, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (YlCode *code = codes->dropped; code;) {
        YlCode *const next = code->next;
        free(code);
        code = next;
    }
    free(codes);
}

void yl_drop_code(void *user)
{
    YlCode *const code = user;
    Codes *const codes = code->codes;
    code->next = __atomic_load_n(&codes->dropped, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&codes->dropped, &code->next, code, 1, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
    let_go(codes);
}

/* Forgets the functions that the library has released. */
static void forget_dropped(lua_State *L, Codes *codes)
{
    for (YlCode *code = __atomic_exchange_n(&codes->dropped, NULL, __ATOMIC_ACQUIRE); code;) {
        YlCode *const next = code->next;
        luaL_unref(L, LUA_REGISTRYINDEX, code->ref);
        free(code);
        code = next;
    }
}

/* Returns the state's Codes; NULL while the state closes. */
static Codes *codes_of(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kCodes);
    Codes **const box = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return box ? *box : NULL;
}

static int collect_sentinel(lua_State *L);

static void push_sentinel(lua_State *L)
{
    lua_newuserdatauv(L, 0, 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, collect_sentinel);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
}

/* Forgets functions in each collection, and leaves an object for the next collection. */
static int collect_sentinel(lua_State *L)
{
    Codes *const codes = codes_of(L);
    if (!codes) return 0;
    forget_dropped(L, codes);
    push_sentinel(L);
    return 0;
}

YlCode *yl_new_code(lua_State *L, Binding *b, int index, const char *call)
{
    Codes *const codes = codes_of(L);
    forget_dropped(L, codes);
    if (!codes->has_sentinel) push_sentinel(L), lua_pop(L, 1);
    codes->has_sentinel = 1;
    lua_pushvalue(L, index);
    const int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    YlCode *const code = malloc(sizeof *code);
    if (!code) {
        luaL_unref(L, LUA_REGISTRYINDEX, ref);
        yl_raise(L, b, YOKE_E_OOM, call, "no memory for the function");
    }
    *code = (YlCode){codes, NULL, ref};
    __atomic_add_fetch(&codes->users, 1, __ATOMIC_RELAXED);
    return code;
}

void yl_push_code(lua_State *L, const YlCode *code)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, code->ref);
}

Binding *yl_binding_of_code(const YlCode *code)
{
    return code->codes->binding;
}

static int to_text(lua_State *L)
{
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Copies the text of the error on the top, which stays. */
static void copy_problem(lua_State *L)
{
    snprintf(problem, sizeof problem, "an error without a text");
    lua_pushcfunction(L, to_text);
    lua_pushvalue(L, -2);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        snprintf(problem, sizeof problem, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
}

static int is_of_state(const Codes *codes, lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    const int is_it = lua_tothread(L, -1) == codes->main;
    lua_pop(L, 1);
    return is_it;
}

yoke_status yl_run_code(YlCode *code, lua_CFunction run, void *call)
{
    YlWalk *const walk = walking;
    if (!walk || walk->failed || !lua_checkstack(walk->L, 8) ||
        !is_of_state(code->codes, walk->L)) {
        snprintf(problem, sizeof problem,
                 "a function of a Lua script can run only in a backward that its own state calls");
        return YOKE_E_STATE;
    }
    lua_State *const L = walk->L;
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, call);
    walking = NULL; /* a walk within begins its own */
    const int status = lua_pcall(L, 1, 0, 0);
    walking = walk;
    if (status == LUA_OK) return YOKE_OK;
    copy_problem(L);
    walk->failed = 1;
    return YOKE_E_CANCELLED;
}

const char *yl_code_problem(void *code)
{
    (void)code;
    return problem;
}

static int close_codes(lua_State *L)
{
    Codes **const box = lua_touserdata(L, 1);
    if (*box) {
        forget_dropped(L, *box);
        let_go(*box);
    }
    *box = NULL;
    return 0;
}

void yl_open_code(lua_State *L, Binding *b)
{
    Codes **const box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_codes);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *box = calloc(1, sizeof **box);
    if (!*box) yl_raise(L, b, YOKE_E_OOM, "require", "no memory for Yoke");
    (*box)->users = 1;
    (*box)->binding = b;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    (*box)->main = lua_tothread(L, -1);
    lua_pop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kCodes);
}
