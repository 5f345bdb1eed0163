/*
 * Several Lua states in a process: side by side in a thread, and a state in each of several threads. Each state
 * loads Yoke for itself. No state sees another state's modes, log or tensors, and closed states leave no tensors.
 */
#define _POSIX_C_SOURCE 200809L
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "yoke/yoke.h"

enum { kThreads = 4, kRounds = 8 };

static int failures;
static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;

static void expect(int holds, const char *what)
{
    if (holds) return;
    pthread_mutex_lock(&failures_lock);
    ++failures;
    pthread_mutex_unlock(&failures_lock);
    fprintf(stderr, "FAILED: %s\n", what);
}

static lua_State *open_state(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    return L;
}

/* Runs a chunk, which must not raise; returns the chunk's single result as an integer. */
static lua_Integer run(lua_State *L, const char *chunk)
{
    lua_Integer result = -1;
    if (luaL_dostring(L, chunk)) {
        luaL_tolstring(L, -1, NULL);
        expect(0, lua_tostring(L, -1));
    } else {
        result = lua_tointeger(L, -1);
    }
    lua_settop(L, 0);
    return result;
}

static const char kTrain[] =
    "local yoke = require 'yoke'\n"
    "yoke.set_num_threads(1)\n"
    "yoke.manual_seed(5)\n"
    "local net = yoke.nn.Sequential(yoke.nn.Linear(4, 8), yoke.nn.ReLU(), yoke.nn.Linear(8, 2))\n"
    "local optimizer = yoke.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})\n"
    "local x, target = yoke.randn({16, 4}), yoke.randint(0, 2, {16})\n"
    "local loss\n"
    "for _ = 1, 20 do\n"
    "  loss = yoke.cross_entropy(net(x), target)\n"
    "  optimizer:zero_grad() loss:backward() optimizer:step()\n"
    "  assert(not pcall(yoke.add, x, target:reshape({4, 4})))\n"
    "end\n"
    "return (string.unpack('i4', string.pack('f', loss:item())))";

static void *train_in_thread(void *result)
{
    lua_Integer first = 0;
    for (int round = 0; round < kRounds; ++round) {
        lua_State *L = open_state();
        const lua_Integer loss = run(L, kTrain);
        if (round) expect(loss == first, "a state's losses depend on the states before it");
        first = loss;
        lua_close(L);
    }
    *(lua_Integer *)result = first;
    return NULL;
}

static void states_in_threads_give_the_same_losses(void)
{
    pthread_t threads[kThreads];
    lua_Integer losses[kThreads];
    for (int i = 0; i < kThreads; ++i)
        expect(!pthread_create(&threads[i], NULL, train_in_thread, &losses[i]), "a thread starts");
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    for (int i = 1; i < kThreads; ++i)
        expect(losses[i] == losses[0], "threads give the same losses");
}

static void states_in_one_thread_keep_their_modes_apart(void)
{
    static const char enabled[] = "return require 'yoke'.is_grad_enabled() and 1 or 0";
    lua_State *a = open_state(), *b = open_state();
    run(a, "scope = require 'yoke'.no_grad()");
    expect(run(a, enabled) == 0, "no_grad holds in its state");
    expect(run(b, enabled) == 1, "and not in another");
    expect(yoke_is_grad_enabled() == 1, "nor in the host program");
    yoke_set_grad_enabled(0);
    expect(run(b, enabled) == 0, "a state without a scope runs in its host's mode");
    run(b,
        "local yoke = require 'yoke' local _ <close> = yoke.enable_grad() "
        "assert(yoke.is_grad_enabled())");
    expect(yoke_is_grad_enabled() == 0, "and leaves it as it was");
    yoke_set_grad_enabled(1);
    lua_close(a); /* with its scope open */
    expect(run(b, enabled) == 1, "the end of a state ends its scopes alone");
    lua_close(b);
}

/* A tensor of another state is no tensor here, however it got in. */
static void a_tensor_of_another_state_is_refused(void)
{
    lua_State *a = open_state(), *b = open_state();
    run(a, "x = require 'yoke'.zeros({2})");
    lua_getglobal(a, "x");
    lua_pushlightuserdata(b, lua_touserdata(a, -1));
    lua_setglobal(b, "x");
    run(b, "assert(not pcall(require 'yoke'.neg, x))");
    lua_close(b);
    run(a, "assert(x.numel == 2)");
    lua_close(a);
}

/* Makes the library log a warning: each variable changed after its first use causes a single warning. */
static void provoke_warning(const char *variable)
{
    yoke_device *device = NULL;
    setenv(variable, "11", 1);
    yoke_device_open("cpu", &device);
    yoke_device_release(device);
}

static void the_log_reaches_each_state_that_asked(void)
{
    static const char subscribe[] =
        "heard = 0 require 'yoke'.set_log_callback(function(level, text)\n"
        "  heard = heard + 1 assert(level == 'warn' and text:find('YOKE_', 1, true))\n"
        "end)";
    static const char poll[] = "require 'yoke'.poll() return heard";
    lua_State *a = open_state(), *b = open_state();
    run(a, subscribe);
    run(b, subscribe);
    provoke_warning("YOKE_PLATFORMS");
    const lua_Integer heard = run(a, poll);
    expect(heard == 1, "a state hears what was said");
    expect(run(b, poll) == heard, "and so does another");
    expect(run(a, poll) == heard, "once");
    run(a, "local yoke = require 'yoke' yoke.set_log_callback(function() error('on purpose') end)");
    provoke_warning("YOKE_DEVICE");
    run(a,
        "local ok, err = pcall(require 'yoke'.poll) assert(not ok and tostring(err):find('on "
        "purpose'))");
    provoke_warning("YOKE_NO_CACHING");
    lua_close(a); /* with a message in its queue */
    expect(run(b, poll) == heard + 2, "the end of a state leaves the log to the others");
    lua_close(b);
}

static int heard_by_host, dropped_by_host;

static void hear(void *user, int32_t level, const char *text)
{
    (void)level, (void)text;
    ++*(int *)user;
}

static void count_drop(void *user)
{
    (void)user;
    ++dropped_by_host;
}

/* Tests two host programs with log callbacks: both keep the log while states come and go. */
static void states_leave_the_log_of_their_host_alone(void)
{
    int beside = 0;
    int64_t id = 0;
    yoke_log_set_callback(hear, &heard_by_host, count_drop);
    expect(!yoke_log_add_callback(hear, &beside, NULL, &id) && id > 0, "another host listens too");
    lua_State *a = open_state(), *b = open_state();
    run(a, "require 'yoke'.set_log_callback(print)");
    run(b, "require 'yoke'");
    expect(dropped_by_host == 0, "a state does not take the log from its host");
    provoke_warning("YOKE_CPU_ISA");
    expect(heard_by_host == 1 && beside == 1, "hosts hear what is said beside a state");
    lua_close(a);
    lua_close(b);
    provoke_warning("YOKE_LOG");
    expect(heard_by_host == 2 && beside == 2, "and after the last state has closed");
    expect(!yoke_log_remove_callback(id) && yoke_log_remove_callback(id),
           "each number is taken away once");
    yoke_log_set_callback(NULL, NULL, NULL);
    expect(dropped_by_host == 1, "the host's own is dropped once");
}

int main(void)
{
    const int64_t before = yoke_live_tensor_count();
    states_in_threads_give_the_same_losses();
    states_in_one_thread_keep_their_modes_apart();
    a_tensor_of_another_state_is_refused();
    the_log_reaches_each_state_that_asked();
    states_leave_the_log_of_their_host_alone();
    expect(yoke_live_tensor_count() == before, "closed states leave no tensor");
    printf("%s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
