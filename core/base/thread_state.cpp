#include "core/base/thread_state.h"

#include "core/base/lent.h"

#include <pthread.h>
#include <cstdlib>
#include <new>
#include <utility>

namespace yoke::detail {

constinit thread_local ThreadState *current __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

void end_of_thread(void *pointer)
{
    auto *state = static_cast<ThreadState *>(pointer);
    // The key's destructors run in any order, and the released objects work through the thread's state.
    current = state;
    // No other thread could end the capture. The capture owns the thread's graph memory, so the owner goes too.
    if (state->graph) lent.drop_graph(state->graph);
    if (Autocast *region = std::exchange(state->autocast, nullptr)) lent.drop_autocast(region);
    if (Scope *scope = std::exchange(state->scope, nullptr)) lent.drop_scope(scope);
    // Taken out first: the code that drops the cache may look here for a cache to empty.
    if (ThreadCache *cache = std::exchange(state->memory_cache, nullptr))
        lent.drop_memory_cache(cache);
    for (yoke_stream *&stream : state->streams)
        if (stream) lent.drop_stream(std::exchange(stream, nullptr));
    state->pool.clear();
    current = nullptr;
    free(state);
}

struct EndKey {
    bool made;
    pthread_key_t key;
};

EndKey make_end_key()
{
    pthread_key_t key = 0;
    const bool made = pthread_key_create(&key, end_of_thread) == 0;
    return {made, key};
}

// Key made while the library is loaded, so a fork never finds it half made. Before that, or if the process has no key
// left, a thread's state is not freed at the thread's end.
EndKey end_key = make_end_key();

}  // namespace

ThreadState &make_thread_state()
{
    auto *state = static_cast<ThreadState *>(calloc(1, sizeof(ThreadState)));
    // Without its key, the state would stay after the thread's end.
    if (!state || (end_key.made && pthread_setspecific(end_key.key, state) != 0)) {
        free(state);
        throw std::bad_alloc();
    }
    current = state;
    return *state;
}

ThreadState *try_make_thread_state() noexcept
{
    try {
        return &make_thread_state();
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

}  // namespace yoke::detail
