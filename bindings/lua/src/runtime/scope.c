/*
 * Scopes of modes: `local _ <close> = yoke.no_grad()`, `yoke.no_grad(fn, ...)`; likewise for detect_anomaly, autocast,
 * checkpoint and stream.
 *
 * C has a grad mode, an autocast region, a checkpoint scope and a stream of a device per thread; here they belong to
 * the coroutine. An open scope is an entry of the Binding's list with its coroutine. Before a call into C the newest
 * entry of each kind of the running coroutine is put in force. After the call the former modes are put back, so no
 * other coroutine and no host program ever sees them. A coroutine without a scope runs in the mode of its thread.
 */
#include <stdlib.h>
#include <string.h>

#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/fields.h"
#include "bindings/lua/src/runtime/scope.h"
#include "bindings/lua/src/runtime/script.h"

typedef struct ScopeBox ScopeBox;

/* C's view of a policy's function, the second user value of the box. */
typedef struct Decider {
    lua_State *L; /* coroutine at the close of the scope, box at 1; NULL: no question */
    int failed;   /* the error is on the top */
} Decider;

struct Scope {
    Scope *newer, *older;
    Binding *binding;
    lua_State *coroutine;
    ScopeBox *box;               /* until the collection of the userdata */
    int32_t grad;                /* the grad mode; -1: another kind of scope */
    int32_t anomaly;             /* the anomaly mode; -1: another kind */
    yoke_autocast *region;       /* NULL: another kind */
    yoke_checkpoint *checkpoint; /* NULL: another kind */
    Decider *decider;            /* for a policy function */
    yoke_stream *stream;         /* NULL: another kind */
    yoke_stream *outer;          /* former stream while `stream` is in force */
    Scope *next_stream;          /* scope with the stream put in force before this stream */
};

/* Userdata with a pointer to its scope in separate memory. If the debug library takes the userdata's __gc away, the
 * scope stays open for good and the list stays whole. */
struct ScopeBox {
    Scope *scope;    /* NULL when closed */
    int closes_once; /* closed, to close it again is an error: a checkpoint scope's */
};

static const char kScopeName[] = "yoke.Scope";

/* Puts a scope's stream in force unless a newer stream of its device is. The newest stream's device is the current
 * device. A failure here repeats in the call itself, with its reason. */
static void enter_stream(Scope *scope, Modes *outer)
{
    yoke_device *device = yoke_stream_device(scope->stream);
    if (scope->outer) return; /* a finalizer of this coroutine runs within a call */
    for (const Scope *newer = outer->streams; newer; newer = newer->next_stream)
        if (yoke_stream_device(newer->stream) == device) return;
    if (yoke_current_stream(device, &scope->outer)) return;
    if (!outer->streams) outer->device = yoke_device_swap(device);
    yoke_set_stream(scope->stream);
    scope->next_stream = outer->streams;
    outer->streams = scope;
}

Modes yl_enter_scopes(lua_State *L, const Binding *b)
{
    Modes outer = {.grad = -1, .anomaly = -1};
    for (Scope *scope = b->scopes; scope; scope = scope->older) {
        if (scope->coroutine != L) continue;
        if (scope->grad >= 0 && outer.grad < 0) outer.grad = yoke_set_grad_enabled(scope->grad);
        if (scope->anomaly >= 0 && outer.anomaly < 0) {
            outer.anomaly = yoke_set_detect_anomaly(scope->anomaly);
            yl_tell_line_of(L);
        }
        if (scope->region && !outer.autocast) {
            outer.autocast = 1;
            outer.region = yoke_autocast_swap(scope->region);
        }
        if (scope->checkpoint && !outer.has_checkpoint) {
            outer.has_checkpoint = 1;
            outer.checkpoint = yoke_checkpoint_current();
            yoke_checkpoint_swap(scope->checkpoint);
        }
        if (scope->stream) enter_stream(scope, &outer);
    }
    return outer;
}

void yl_leave_streams(Modes outer)
{
    for (Scope *scope = outer.streams; scope; scope = scope->next_stream) {
        yoke_set_stream(scope->outer);
        yoke_stream_release(scope->outer);
        scope->outer = NULL;
    }
    yoke_device_swap(outer.device);
}

void yl_leave_anomaly(Modes outer)
{
    yoke_set_detect_anomaly(outer.anomaly);
    yl_tell_line_of(NULL);
}

/* Keeps the coroutine alive by a user value until the scope is closed or collected, so that no other coroutine gets
 * the same address. */
Scope *yl_push_scope(lua_State *L, Binding *b)
{
    ScopeBox *box = lua_newuserdatauv(L, sizeof *box, 2);
    *box = (ScopeBox){NULL, 0};
    luaL_setmetatable(L, kScopeName);
    lua_pushthread(L);
    lua_setiuservalue(L, -2, 1);
    Scope *scope = calloc(1, sizeof *scope);
    if (!scope) yl_raise(L, b, YOKE_E_OOM, "scope", "no memory for a scope");
    scope->binding = b;
    scope->coroutine = L;
    scope->grad = -1;
    scope->anomaly = -1;
    scope->older = b->scopes;
    if (b->scopes) b->scopes->newer = scope;
    b->scopes = scope;
    box->scope = scope;
    scope->box = box;
    return scope;
}

/* Calls the function of the box at 1 for an op and returns the answer. */
static int ask(lua_State *L)
{
    const ScopeBox *box = lua_touserdata(L, 1);
    const yoke_checkpoint_op *op = lua_touserdata(L, 2);
    lua_getiuservalue(L, 1, 2);
    lua_createtable(L, 0, 5);
    yl_set_text(L, "name", op->name);
    yl_set_text(L, "dtype", yoke_dtype_name(op->dtype));
    yl_set_integer(L, "bytes", op->bytes);
    yl_set_number(L, "work", op->work);
    lua_createtable(L, (int)op->ndim, 0);
    for (int64_t axis = 0; axis < op->ndim; ++axis) {
        lua_pushinteger(L, op->shape[axis]);
        lua_rawseti(L, -2, axis + 1);
    }
    lua_setfield(L, -2, "shape");
    lua_call(L, 1, 1);
    const char *answer = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    static const char *const answers[] = {"recompute", "keep", "offload"}; /* in C's order */
    int said = 0;
    while (said < 3 && strcmp(answer, answers[said])) ++said;
    if (said == 3)
        yl_raise(
            L, box->scope->binding, YOKE_E_VALUE, "checkpoint_scope",
            "option 'policy' returned %s for %s; it must return \"keep\", \"recompute\" or \"offload\"",
            luaL_tolstring(L, -1, NULL), op->name);
    lua_pushinteger(L, said);
    return 1;
}

/* Answers what happens to an op's results, by the script's function. Runs within yoke_checkpoint_end, so it must not
 * raise: after an error it returns -1 and keeps the error on the top. */
static int32_t decide(void *user, const yoke_checkpoint_op *op)
{
    Decider *decider = user;
    lua_State *L = decider->L;
    if (!L || decider->failed) return YOKE_CHECKPOINT_RECOMPUTE;
    lua_pushcfunction(L, ask);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, (void *)op);
    if (lua_pcall(L, 2, 1, 0)) {
        decider->failed = 1;
        return -1;
    }
    const int32_t said = (int32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return said;
}

/* Ends the checkpoint scope in force for the moment, and puts the former scope back. Another scope may be in force:
 * the host program's, or a scope of a coroutine whose call a finalizer interrupts. */
static yoke_status end_checkpoint(const Scope *scope, lua_State *L)
{
    yoke_checkpoint *before = yoke_checkpoint_current();
    if (scope->decider) scope->decider->L = L;
    yoke_checkpoint_swap(scope->checkpoint);
    const yoke_status status = yoke_checkpoint_end(scope->checkpoint);
    if (before != scope->checkpoint) yoke_checkpoint_swap(before);
    if (scope->decider) scope->decider->L = NULL;
    return status;
}

/* Closes an open scope without calls of its function. */
static void release_checkpoint(yoke_checkpoint *checkpoint)
{
    yoke_checkpoint *before = yoke_checkpoint_current();
    yoke_checkpoint_swap(checkpoint);
    const int is_open = yoke_checkpoint_current() == checkpoint;
    yoke_checkpoint_release(checkpoint);
    if (is_open && before != checkpoint) yoke_checkpoint_swap(before);
}

static void free_scope(Scope *scope)
{
    yoke_autocast_release(scope->region);
    if (scope->checkpoint) release_checkpoint(scope->checkpoint);
    yoke_stream_release(scope->stream);
    free(scope->decider);
    free(scope);
}

static int let_go(lua_State *L, ScopeBox *box)
{
    Scope *scope = box->scope;
    box->scope = NULL;
    if (!scope || !yl_binding(L)->is_open) return 0; /* freed by yl_close_scopes */
    if (scope->newer)
        scope->newer->older = scope->older;
    else
        scope->binding->scopes = scope->older;
    if (scope->older) scope->older->newer = scope->newer;
    free_scope(scope);
    return 0;
}

/* Implements __gc of a scope. */
static int collect_scope(lua_State *L)
{
    return let_go(L, luaL_checkudata(L, 1, kScopeName));
}

/* Closes a checkpoint scope at 1. After a STATE error the scope stays open. */
static void close_checkpoint(lua_State *L, Binding *b, ScopeBox *box)
{
    if (box->scope->coroutine != L)
        yl_raise(L, b, YOKE_E_STATE, "checkpoint_scope",
                 "this scope was opened in another coroutine; close it there");
    const yoke_status status = end_checkpoint(box->scope, L);
    if (box->scope->decider && box->scope->decider->failed) {
        let_go(L, box);
        lua_error(L);
    }
    yl_check(L, b, status);
}

/* Implements __close, and :close() after its own check. */
static int close_scope(lua_State *L)
{
    Binding *b = yl_binding(L);
    ScopeBox *box = luaL_checkudata(L, 1, kScopeName);
    if (box->scope && box->scope->checkpoint && b->is_open) close_checkpoint(L, b, box);
    return let_go(L, box);
}

/* Implements :close(). Raises for a second close of a checkpoint scope. */
static int close_scope_once(lua_State *L)
{
    const ScopeBox *box = yl_need_object(L, yl_binding(L), kScopeName, "close", "a scope");
    if (!box->scope && box->closes_once)
        return yl_raise(L, yl_binding(L), YOKE_E_STATE, "checkpoint_scope",
                        "this scope is already closed; close a scope once");
    return close_scope(L);
}

void yl_close_scopes(Binding *b)
{
    while (b->scopes) {
        Scope *scope = b->scopes;
        b->scopes = scope->older;
        free_scope(scope);
    }
}

static int finish_call(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    (void)context;
    return lua_gettop(L) - 1; /* all but the scope, which closes at the return */
}

/* Runs the function below the scope on the top of the stack, with its arguments, and returns its results. An error or
 * a yield passes through. */
int yl_run_in_scope(lua_State *L)
{
    const int arguments = lua_gettop(L) - 2;
    lua_insert(L, 1);
    lua_toclose(L, 1);
    lua_callk(L, arguments, LUA_MULTRET, 0, finish_call);
    return finish_call(L, LUA_OK, 0);
}

void yl_scope_grad(Scope *scope, int32_t enabled)
{
    scope->grad = enabled;
}

void yl_scope_anomaly(Scope *scope, int32_t mode)
{
    scope->anomaly = mode;
}

void yl_scope_autocast(Scope *scope, yoke_autocast *region)
{
    scope->region = region;
}

void yl_scope_checkpoint(Scope *scope, yoke_checkpoint *checkpoint)
{
    scope->checkpoint = checkpoint;
    scope->box->closes_once = 1;
}

void yl_scope_policy(lua_State *L, Binding *b, Scope *scope, int box,
                     yoke_checkpoint_options *options)
{
    scope->decider = calloc(1, sizeof *scope->decider);
    if (!scope->decider) yl_raise(L, b, YOKE_E_OOM, "checkpoint_scope", "no memory for a scope");
    lua_setiuservalue(L, box, 2);
    options->policy = "function";
    options->decide = decide;
    options->user = scope->decider;
}

void yl_scope_stream(Scope *scope, yoke_stream *stream)
{
    scope->stream = stream;
}

int yl_has_body(lua_State *L, Binding *b, int index, const char *call)
{
    if (lua_gettop(L) < index) return 0;
    if (lua_type(L, index) != LUA_TFUNCTION)
        yl_wrong_type(L, (Target){b, call, "fn"}, index,
                      "a function to run, or nothing for a scope to close");
    return 1;
}

void yl_open_scope(lua_State *L, Binding *b)
{
    static const luaL_Reg events[] = {
        {"__gc", collect_scope}, {"__close", close_scope}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", close_scope_once}, {NULL, NULL}};
    luaL_newmetatable(L, kScopeName);
    yl_set_functions(L, b, events);
    lua_createtable(L, 0, 1);
    yl_set_functions(L, b, methods);
    lua_setfield(L, -2, "__index");
    yl_protect(L, kScopeName);
    lua_pop(L, 1);
}
