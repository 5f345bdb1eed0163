/* scope.h: modes that belong to a coroutine: the grad mode, the anomaly mode, the autocast region, the checkpoint
 * scope, the stream. */
#ifndef YOKE_LUA_RUNTIME_SCOPE_H
#define YOKE_LUA_RUNTIME_SCOPE_H

#include "bindings/lua/src/runtime/error.h"

/* Modes in force at yl_enter, for yl_leave to put back. */
typedef struct Modes {
    int32_t grad;     /* -1: unchanged */
    int32_t anomaly;  /* -1: unchanged */
    int32_t autocast; /* 1: `region` is put back */
    yoke_autocast *region;
    int32_t has_checkpoint; /* 1: `checkpoint` is put back */
    yoke_checkpoint *checkpoint;
    Scope *streams;      /* scopes with streams in force, each with the former stream; NULL: none */
    yoke_device *device; /* the thread's own, with streams in force; NULL: none */
} Modes;

/* Puts the running coroutine's grad mode, autocast region, checkpoint scope and streams in force. Returns the former
 * modes, for yl_leave. */
Modes yl_enter_scopes(lua_State *L, const Binding *b);
static inline Modes yl_enter(lua_State *L, const Binding *b)
{
    const Modes none = {.grad = -1, .anomaly = -1};
    return b->scopes ? yl_enter_scopes(L, b) : none;
}
void yl_leave_streams(Modes outer);
void yl_leave_anomaly(Modes outer);
static inline void yl_leave(Modes outer)
{
    if (outer.streams) yl_leave_streams(outer);
    if (outer.anomaly >= 0) yl_leave_anomaly(outer);
    if (outer.grad >= 0) yoke_set_grad_enabled(outer.grad);
    if (outer.autocast) yoke_autocast_swap(outer.region);
    if (outer.has_checkpoint) yoke_checkpoint_swap(outer.checkpoint);
}

/* Leaves, and raises the failure of the call in between. */
static inline void yl_leave_checked(lua_State *L, Binding *b, Modes outer, yoke_status status)
{
    yl_leave(outer);
    yl_check(L, b, status);
}

/* Pushes an open scope of the running coroutine without any mode yet. */
Scope *yl_push_scope(lua_State *L, Binding *b);
/* Set the mode of a scope; references become the scope's own. */
void yl_scope_grad(Scope *scope, int32_t enabled);
void yl_scope_anomaly(Scope *scope, int32_t mode);
void yl_scope_autocast(Scope *scope, yoke_autocast *region);
void yl_scope_checkpoint(Scope *scope, yoke_checkpoint *checkpoint);
/* Makes the function on the top, which is popped, the policy of the scope in the userdata at `box`. */
void yl_scope_policy(lua_State *L, Binding *b, Scope *scope, int box,
                     yoke_checkpoint_options *options);
void yl_scope_stream(Scope *scope, yoke_stream *stream);

/* Returns whether there is a function for a scope at `index`; raises for any other value. */
int yl_has_body(lua_State *L, Binding *b, int index, const char *call);
/* Runs the function below the scope on the top of the stack, with its arguments, and returns its results. An error or
 * a yield passes through. */
int yl_run_in_scope(lua_State *L);

void yl_open_scope(lua_State *L, Binding *b);
void yl_close_scopes(Binding *b); /* the state closes, and no call comes any more */

#endif /* YOKE_LUA_RUNTIME_SCOPE_H */
