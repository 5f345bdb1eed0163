#include "core/base/thread_state.h"

#include <cstdlib>
#include <pthread.h>

namespace yoke::detail
{

thread_local ThreadState *current __attribute__((tls_model("initial-exec"))) = nullptr;
void (*drop_memory_cache)(void *cache) = nullptr;

namespace
{

void end_of_thread(void *pointer)
{
    auto *state = static_cast<ThreadState *>(pointer);
    if (state->memory_cache && drop_memory_cache)
        drop_memory_cache(state->memory_cache);
    state->pool.clear();
    if (current == state)
        current = nullptr;
    free(state);
}

pthread_key_t thread_key()
{
    static const pthread_key_t key = [] {
        pthread_key_t made = 0;
        pthread_key_create(&made, end_of_thread);
        return made;
    }();
    return key;
}

} // namespace

ThreadState &make_thread_state()
{
    // A process that cannot find 16 KiB cannot even report it: this is the one place where there is no status to give.
    auto *state = static_cast<ThreadState *>(calloc(1, sizeof(ThreadState)));
    if (!state)
        abort();
    current = state;
    pthread_setspecific(thread_key(), state);
    return *state;
}

} // namespace yoke::detail
