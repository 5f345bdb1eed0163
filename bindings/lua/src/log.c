/*
 * Log. Yoke has one log for the process and may log from any thread, but a Lua function may run only on the thread of
 * its state. So log lines go to standard error until a state calls set_log_callback. From then on a line waits in
 * this state's queue, and yoke.poll() passes it to the callback.
 *
 * The hub below is the only data shared by states, under one lock. Other programs of the process, such as Python, get
 * the log as well. If a queue is full, messages are counted, and the count is passed on as a separate message.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/arguments.h"
#include "bindings/lua/src/runtime/poll.h"

enum { kQueueLimit = 1000 };

static const char kCallback; /* key of the state's callback in the registry */

typedef struct Message {
    struct Message *next;
    int32_t level;
    char text[];
} Message;

typedef struct Queue {
    struct Queue *next;
    const Binding *owner;
    Message *first, *last;
    int count, lost;
} Queue;

static struct {
    pthread_mutex_t lock;
    Queue *queues; /* a queue for each state with a callback */
    int states;    /* states with Yoke loaded */
    int64_t id;    /* id of the hub's callback while there are queues */
} hub = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

/* Repairs the hub in the child of a fork. A thread missing in the child may have held the lock: the lock would never
 * open, and its change is half done. So messages are dropped; the list of queues is whole at every moment. The fork
 * cannot take the lock first, because of a deadlock with a thread that logs with a lock of the library held. */
static void mend_after_fork(void)
{
    if (pthread_mutex_trylock(&hub.lock) == 0) {
        pthread_mutex_unlock(&hub.lock);
        return;
    }
    pthread_mutex_init(&hub.lock, NULL);
    for (Queue *queue = hub.queues; queue; queue = queue->next) {
        queue->first = queue->last = NULL;
        queue->count = 0;
    }
}

static void guard_fork(void)
{
    pthread_atfork(NULL, NULL, mend_after_fork);
}

static const char *const kLevels[] = {"error", "warn", "info", "debug"};

static const char *level_name(int32_t level)
{
    return level >= 0 && level < 4 ? kLevels[level] : "debug";
}

static void append(Queue *queue, int32_t level, const char *text)
{
    const size_t size = strlen(text) + 1;
    Message *message = queue->count < kQueueLimit ? malloc(sizeof *message + size) : NULL;
    if (!message) {
        ++queue->lost;
        return;
    }
    message->next = NULL;
    message->level = level;
    memcpy(message->text, text, size);
    if (queue->last)
        queue->last->next = message;
    else
        queue->first = message;
    queue->last = message;
    ++queue->count;
}

/* Puts a log line into each state's queue, from any thread. Without a queue, prints the line to standard error. */
static void receive(void *user, int32_t level, const char *text)
{
    (void)user;
    pthread_mutex_lock(&hub.lock);
    for (Queue *queue = hub.queues; queue; queue = queue->next) append(queue, level, text);
    const int heard = hub.queues != NULL;
    pthread_mutex_unlock(&hub.lock);
    if (!heard) fprintf(stderr, "yoke: %s: %s\n", level_name(level), text);
}

/* Returns the place that points to the state's queue, or the end of the list. The caller holds the lock. */
static Queue **find_queue(const Binding *b)
{
    Queue **place = &hub.queues;
    while (*place && (*place)->owner != b) place = &(*place)->next;
    return place;
}

static int subscribe(const Binding *b)
{
    pthread_mutex_lock(&hub.lock);
    Queue **place = find_queue(b);
    if (!*place && (*place = calloc(1, sizeof **place)) != NULL) (*place)->owner = b;
    const int done = *place != NULL;
    pthread_mutex_unlock(&hub.lock);
    return done;
}

static void unsubscribe(const Binding *b)
{
    pthread_mutex_lock(&hub.lock);
    Queue **place = find_queue(b), *queue = *place;
    if (queue) *place = queue->next;
    pthread_mutex_unlock(&hub.lock);
    for (Message *message = queue ? queue->first : NULL; message;) {
        Message *next = message->next;
        free(message);
        message = next;
    }
    free(queue);
}

/* Pushes the level and the text of the oldest message, or the count of lost messages; returns 0 if there is none. The
 * text goes to a buffer on the C stack first, because a push may raise while the lock is held. */
static int push_oldest(lua_State *L, const Binding *b)
{
    char text[2048];
    int32_t level = 1;
    pthread_mutex_lock(&hub.lock);
    Queue *queue = *find_queue(b);
    Message *message = queue ? queue->first : NULL;
    const int lost = queue && !message ? queue->lost : 0;
    if (message) {
        queue->first = message->next;
        if (!queue->first) queue->last = NULL;
        --queue->count;
    } else if (queue) {
        queue->lost = 0;
    }
    pthread_mutex_unlock(&hub.lock);
    if (message) {
        level = message->level;
        snprintf(text, sizeof text, "%s", message->text);
        free(message);
    } else if (lost) {
        snprintf(text, sizeof text, "%d messages were lost; call yoke.poll() more often", lost);
    } else {
        return 0;
    }
    lua_pushstring(L, level_name(level));
    lua_pushstring(L, text);
    return 1;
}

/* Implements yoke.set_log_callback(fn): fn(level, message) runs in yoke.poll(); nil goes back to standard error. */
static int set_log_callback(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "set_log_callback", 1, 1);
    const int type = lua_type(L, 1);
    if (type != LUA_TFUNCTION && type != LUA_TNIL)
        return yl_wrong_type(L, (Target){b, "set_log_callback", "fn"}, 1, "a function or nil");
    if (type == LUA_TNIL)
        unsubscribe(b);
    else if (!subscribe(b))
        return yl_raise(L, b, YOKE_E_OOM, "set_log_callback", "no memory for a queue");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kCallback);
    return 0;
}

/* Calls the callback for each message, and returns their number. If a call raises, the rest stays queued. */
static int hand_over(lua_State *L, Binding *b)
{
    int count = 0;
    while (lua_rawgetp(L, LUA_REGISTRYINDEX, &kCallback) == LUA_TFUNCTION && push_oldest(L, b)) {
        lua_call(L, 2, 0);
        ++count;
    }
    lua_pop(L, 1);
    return count;
}

/* Counts a state less; the last state removes the hub's callback, and no other program's. */
static void leave_hub(void)
{
    pthread_mutex_lock(&hub.lock);
    const int64_t id = --hub.states == 0 ? hub.id : 0;
    if (id) hub.id = 0;
    pthread_mutex_unlock(&hub.lock);
    if (id) yoke_log_remove_callback(id);
}

/* Adds the hub's callback to the log of the process. Raises without memory for the callback. */
static void start_hearing(lua_State *L, Binding *b)
{
    int64_t id = 0;
    if (yoke_log_add_callback(receive, NULL, NULL, &id)) {
        leave_hub();
        yl_raise_last(L, b);
    }
    pthread_mutex_lock(&hub.lock);
    hub.id = id; /* this state still counts, so a state is left to remove the callback */
    pthread_mutex_unlock(&hub.lock);
}

void yl_open_log(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {{"set_log_callback", set_log_callback}, {NULL, NULL}};
    yl_set_functions(L, b, functions);
    yl_on_poll(b, hand_over);
    static pthread_once_t guarded = PTHREAD_ONCE_INIT;
    pthread_once(&guarded, guard_fork);
    pthread_mutex_lock(&hub.lock);
    const int first = hub.states++ == 0;
    pthread_mutex_unlock(&hub.lock);
    if (first) start_hearing(L, b);
}

void yl_close_log(Binding *b)
{
    unsubscribe(b);
    leave_hub();
}
